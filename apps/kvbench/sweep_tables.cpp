// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/sweep_tables.hpp>

#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>

#include <apps/kvbench/commands.hpp>

namespace kvbench::app {
namespace {

/// "out.csv", "measures" -> "out.measures.csv".
std::string path_beside(const std::string& output, const std::string& table) {
  std::filesystem::path path(output);
  return path.replace_extension("." + table + path.extension().string()).string();
}

}  // namespace

SweepTables::SweepTables(const std::string& what, Parts parts, const TableFlags& flags,
                         const std::vector<NamedFile>& inputs, const std::string& cells)
    : flags_(flags) {
  const bool to_stdout = flags.output.empty() || flags.output == "-";
  if (parts.replays && parts.measures && to_stdout) {
    throw Error(
        "{} replays and measures, which makes two tables; name a file with -o OUT.csv (measures are written to "
        "OUT.measures.csv)",
        what);
  }
  const std::string beside = to_stdout || is_stream(flags.output) ? "" : flags.output;
  const std::string measures = parts.replays ? path_beside(flags.output, "measures") : flags.output;
  const std::string claims = beside.empty() || !parts.claims ? "" : path_beside(flags.output, "claims");
  check_distinct(std::vector<NamedFile>{{"-o", flags.output},
                                        {"the table of measures", parts.replays && parts.measures ? measures : ""},
                                        {"the table of claims", claims},
                                        {"the cells file", cells}},
                 inputs);
  if (parts.replays) records_.emplace(flags.output);
  if (parts.measures) measures_.emplace(measures);
  if (!claims.empty()) claims_.emplace(claims);
}

int SweepTables::finish(const sweep::SweepResults& results) {
  if (measures_) {
    const std::span<const measures::MeasureRow> rows(results.measures);
    measures_->finish(report::table_of(flags_.format, report::measure_columns(), rows));
  }
  if (claims_) claims_->finish(report::claims_table(flags_.format, results.claims));
  const bool summary = main().to_file() ? !flags_.summary.empty() || stdout_is_terminal()
                                        : flags_.format == "md" || shows_table(flags_.format, main());
  const std::string verdicts = summary ? verdict_text(results.claims) : "";
  if (!verdicts.empty()) print(verdicts + "\n");  // first: they are what the sweep asks
  if (records_) {
    records_->finish(format_records(flags_, results.records, *records_));
    if (records_->to_file()) print(summary_beside(flags_, results.records));
  }
  return exit_code(results.records);
}

}  // namespace kvbench::app
