// SPDX-License-Identifier: Apache-2.0
#include "sweep_tables.hpp"

#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/report/claim_table.hpp>
#include <kvbench/report/measure_table.hpp>

#include "commands.hpp"

namespace kvbench::app {
namespace {

/// "out.csv", "measures" -> "out.measures.csv".
std::string path_beside(const std::string& output, const std::string& table) {
  std::filesystem::path path(output);
  return path.replace_extension("." + table + path.extension().string()).string();
}

}  // namespace

SweepTables::SweepTables(const std::string& what, bool replays, bool measures, bool claims, const TableFlags& flags)
    : flags_(flags) {
  if (replays && measures && (flags.output.empty() || flags.output == "-")) {
    throw Error(
        "{} replays and measures, which makes two tables; name a file with -o OUT.csv (measures are written to "
        "OUT.measures.csv)",
        what);
  }
  if (replays) records_.emplace(flags.output);
  if (measures) measures_.emplace(replays ? path_beside(flags.output, "measures") : flags.output);
  if (claims && main().to_file() && !std::filesystem::is_other(flags.output))
    claims_.emplace(path_beside(flags.output, "claims"));
}

int SweepTables::finish(const sweep::SweepResults& results) {
  if (measures_) measures_->finish(measures_csv(results.measures));
  if (claims_) claims_->finish(claims_csv(results.claims));
  const bool summary =
      main().to_file() ? flags_.summary || stdout_is_terminal() : flags_.format == "md" || shows_table(flags_.format, main());
  if (records_) {
    records_->finish(format_records(flags_, results.records, *records_));
    if (records_->to_file() && summary) print(summary_table(results.records));
  }
  if (summary) print(claims_text(results.claims));
  return exit_code(results.records);
}

}  // namespace kvbench::app
