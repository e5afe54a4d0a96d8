// SPDX-License-Identifier: Apache-2.0
// Flags that several subcommands have: how to compute (replay, sweep), which rows to write, and in which format (also
// merge).
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <kvbench/replay/plan/request.hpp>
#include <kvbench/replay/records/record.hpp>

#include <apps/common/rows/device_flags.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/request_flags.hpp>
#include <apps/common/rows/shared_flags.hpp>

namespace kvbench::app {

struct TableFlags {
  replay::Grain grain = replay::Grain::layer;
  std::string output, format;
  std::string summary;  ///< --summary: empty, "short" or "full"
  bool no_times = false;
  std::vector<std::string> labels;  ///< --label, of what is printed for readers
};

struct RunFlags : TableFlags, DeviceFlags {
  bool quiet = false, verbose = false;
  RequestFlags request;  ///< of a sweep: the fields that are flags of it
};

/// Adds --format, -o, and the flags on rows of a replay.
void add_table_flags(CLI::App* flags, TableFlags& options);
/// Says on stderr which of them have no effect.
void check_table_flags(const CLI::App& flags, const TableFlags& options);
/// Adds --memory.
void add_memory_flag(CLI::App* flags, RunFlags& options);
/// Adds all of these, and the other flags of commands that replay.
void add_run_flags(CLI::App* flags, RunFlags& options);
/// On a GPU: reports on stderr how much of its memory the run held.
void report_device_memory(const RunFlags& options);

/// The files beside its trace that a request reads: those of its methods (store::files_of_method()), and the
/// calibration.
std::vector<NamedFile> input_files(const replay::ReplayRequest& request);

/// The records in the format of the flags: Markdown, the summary (in full with --format table), or else a table.
std::string format_records(const TableFlags& options, std::span<const replay::Record> records, const Output& output);
/// What is printed beside a file, for --summary or on a terminal; "" otherwise.
std::string summary_beside(const TableFlags& options, std::span<const replay::Record> records);
/// The exit code for these records.
int exit_code(std::span<const replay::Record> records);

}  // namespace kvbench::app
