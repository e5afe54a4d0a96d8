// SPDX-License-Identifier: Apache-2.0
#include "sweep_tables.hpp"

#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/report/measure_table.hpp>

#include "commands.hpp"

namespace kvbench::app {
namespace {

/// "out.csv" -> "out.measures.csv".
std::string measures_path(const std::string& output) {
  std::filesystem::path path(output);
  return path.replace_extension(".measures" + path.extension().string()).string();
}

}  // namespace

SweepTables::SweepTables(const std::string& what, bool replays, bool measures, const TableFlags& flags) : flags_(flags) {
  if (replays && measures && (flags.output.empty() || flags.output == "-")) {
    throw Error(
        "{} replays and measures, which makes two tables; name a file with -o OUT.csv (measures are written to "
        "OUT.measures.csv)",
        what);
  }
  if (replays) records_.emplace(flags.output);
  if (measures) measures_.emplace(replays ? measures_path(flags.output) : flags.output);
}

int SweepTables::finish(const sweep::SweepResults& results) {
  if (measures_) measures_->finish(measures_csv(results.measures));
  if (!records_) return done;
  const bool to_file = records_->to_file();
  records_->finish(format_records(flags_, results.records, *records_));
  if (to_file && (flags_.summary || stdout_is_terminal())) print(summary_table(results.records));
  return exit_code(results.records);
}

}  // namespace kvbench::app
