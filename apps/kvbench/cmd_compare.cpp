// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/config/sweep.hpp>
#include <kvbench/core/suggest.hpp>
#include <kvbench/report/claim_table.hpp>
#include <kvbench/report/compare_table.hpp>
#include <kvbench/report/query_csv.hpp>
#include <kvbench/sweep/cells_results.hpp>

#include "../command_line.hpp"
#include "column_page.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "run_flags.hpp"

namespace kvbench::app {
namespace {

const std::map<std::string, Span> spans = {
    {"layer", Span::layer}, {"head", Span::head}, {"prompt", Span::prompt}, {"all", Span::all}};

struct CompareFlags {
  std::vector<std::string> files;
  std::string a, b, metric = "rel_err", sweep, output, format;
  Span span = Span::layer;
};

Metric metric_of(const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t m = 0; m < metric_count; ++m) names.emplace_back(name_of(static_cast<Metric>(m)));
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw Error("--metric: there is no metric '{}' per query.{} The metrics are: {}", name, did_you_mean(name, names),
                fmt::join(names, ", "));
  }
  return static_cast<Metric>(found - names.begin());
}

/// The files, open for one metric.
class OpenResults {
 public:
  OpenResults(const std::vector<std::string>& paths, Metric metric) {
    for (const std::string& path : paths) {
      if (sweep::is_cells_file(path))
        owners_.push_back(std::make_unique<sweep::CellsResults>(path, metric));
      else
        owners_.push_back(open_query_results(path, name_of(metric)));
      files.push_back(owners_.back().get());
    }
  }
  std::vector<const QueryResults*> files;

 private:
  std::vector<std::unique_ptr<QueryResults>> owners_;
};

Output open_output(const CompareFlags& o) {
  std::vector<NamedFile> inputs{{"the sweep file", o.sweep}};
  for (const std::string& file : o.files) inputs.push_back({"the results", file});
  check_distinct(std::vector<NamedFile>{{"-o", o.output}}, inputs);
  return Output(o.output);
}

/// The claims of a sweep file, tested on these results.
int test_claims(const CompareFlags& o) {
  Output output = open_output(o);
  std::vector<ClaimResult> results;
  for (const config::Published& published : config::read_sweep(o.sweep).published) {
    const OpenResults results_of_metric(o.files, published.claim.metric);
    results.push_back(test_claim(published.claim, results_of_metric.files));
  }
  if (results.empty()) throw Error("{}: states no claim; add a block [[published]] with relations", o.sweep);
  output.finish(o.format == "md" || shows_table(o.format, output) ? claims_text(results) : claims_csv(results));
  return done;
}

int run(const CompareFlags& o) {
  if (o.files.empty())
    throw Error("give a file of results: one written with replay --raw, a CSV with --rows query, or the cells file of a sweep");
  if (!o.sweep.empty()) return test_claims(o);
  Output output = open_output(o);
  ComparisonRequest request{.files = {}, .a = {}, .b = {}, .metric = metric_of(o.metric), .span = o.span};
  if (!o.a.empty()) request.a = parse_configuration(o.a, "--a");
  if (!o.b.empty()) request.b = parse_configuration(o.b, "--b");
  const OpenResults results(o.files, request.metric);
  request.files = results.files;
  const std::vector<Comparison> rows = compare(request);
  const bool table = shows_table(o.format, output);
  output.finish(o.format == "md" ? compare_markdown(rows) : table ? compare_terminal(rows) : compare_csv(rows));
  return done;
}

}  // namespace

Command add_compare(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("compare", "Test which differences between methods are significant, on paired queries");
  auto options = std::make_shared<CompareFlags>();
  CompareFlags& o = *options;
  flags->add_option("results", o.files,
                    "Files written with replay --raw, CSV files with --rows query, or cells files of a sweep");
  const char* syntax = "such as subgen, subgen[t=4], uniform@25% or 2:uniform (of the second file)";
  flags->add_option("--a", o.a, fmt::format("A configuration: [FILE:]METHOD[PARAMS][@BUDGET], {}", syntax));
  flags->add_option("--b", o.b, "The other configuration (default: all others; without --a and --b: all against the best one)");
  flags->add_option("--metric", o.metric, "Metric with values per query")->capture_default_str();
  add_choice(flags, "--by", o.span, spans, "Scope of one comparison: layer, head (query head), prompt or all (default: layer)");
  CLI::Option* sweep =
      flags->add_option("--sweep", o.sweep, "Test the claims of this sweep file, with the test of the sweep itself");
  for (const char* other : {"--a", "--b", "--metric", "--by"}) sweep->excludes(other);
  add_form_flags(flags, o.format, o.output);
  add_columns_flag(flags, "Print the columns of the CSV and exit", o.format, docs_of(compare_columns()));
  return {flags, [options] { return run(*options); }};
}

}  // namespace kvbench::app
