// SPDX-License-Identifier: Apache-2.0
// The command line of kvbench-validate. It needs no check, so that kvbench knows it too: its help, its completion, and
// what it says about flags that belong to another command.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <kvbench/evidence/check_row.hpp>

#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/device_flags.hpp>
#include <apps/common/rows/request_flags.hpp>

namespace kvbench::app {

struct ValidateFlags {
  std::string trace, output, format;
  std::vector<std::string> checks, claims, methods;
  RequestFlags request;  ///< its layers and heads
  evidence::ValidateOptions validate;
  const CLI::Option *seeds_flag = nullptr, *queries_flag = nullptr;
  bool thorough = false, synthetic = false, mutants = false, list = false, summary = false, quiet = false;
};
/// Adds the command `validate`, whose flags set the options.
CLI::App* declare_validate(CLI::App& app, ValidateFlags& options);

struct GoldenFlags : DeviceFlags {
  std::string trace, golden, write, port, output, format;
  std::vector<std::string> methods;
  bool summary = false, quiet = false;
};
/// Adds the command `golden` below `validate`. columns: what --columns prints.
CLI::App* declare_golden(CLI::App& validate, GoldenFlags& options, std::vector<ColumnDoc> columns = {});

}  // namespace kvbench::app
