// SPDX-License-Identifier: Apache-2.0
// Flags that subcommands share: where to compute (replay, sweep), which rows to write and in what form (and merge).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <kvbench/replay/plan/request.hpp>
#include <kvbench/replay/records/record.hpp>

#include "output.hpp"

namespace kvbench::app {

struct TableFlags {
  Grain grain = Grain::layer;
  std::string output, format;
  bool no_times = false, summary = false;
};

struct RunFlags : TableFlags {
  ReplayRequest machine;  ///< backend, isa, threads, standalone and kv_element; nothing else of it is used
  bool quiet = false;
  std::uint64_t memory = 0;  ///< bytes, 0: not given
  Isa isa = Isa::scalar;
  CLI::Option *isa_flag = nullptr, *device_flag = nullptr;
};

/// --format and -o, of whoever writes one table.
void add_form_flags(CLI::App* flags, std::string& format, std::string& output);
/// Those, and what rows of a replay hold.
void add_table_flags(CLI::App* flags, TableFlags& options);
/// Those, and the flags of whoever computes.
void add_run_flags(CLI::App* flags, RunFlags& options);
/// Settles which device computes; says on stderr where `auto` finds no GPU. Throws Error where the one asked for cannot be had.
void resolve_device(RunFlags& options);
/// On a GPU: says on stderr how much of its memory the run held.
void report_device_memory(const RunFlags& options);
/// Copies what the flags say into `request`.
void set_machine(const RunFlags& options, ReplayRequest& request);

/// The records in the format of the flags: Markdown, the short table (shows_table()), or else CSV.
std::string format_records(const TableFlags& options, std::span<const Record> records, const Output& output);
/// The short table; where the records come from several runs, one under each run's name.
std::string summary_table(std::span<const Record> records);
/// The exit code of a run that wrote these.
int exit_code(std::span<const Record> records);

}  // namespace kvbench::app
