// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/core/suggest.hpp>
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
  std::string a, b, metric = "rel_err", output, format;
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

int run(const CompareFlags& o) {
  if (o.files.empty())
    throw Error("give a file of results: one written with replay --raw, a CSV with --rows query, or the cells file of a sweep");
  ComparisonRequest request{.files = {}, .a = {}, .b = {}, .metric = metric_of(o.metric), .span = o.span};
  if (!o.a.empty()) request.a = parse_configuration(o.a, "--a");
  if (!o.b.empty()) request.b = parse_configuration(o.b, "--b");
  std::vector<std::unique_ptr<QueryResults>> files;
  for (const std::string& path : o.files) {
    if (sweep::is_cells_file(path))
      files.push_back(std::make_unique<sweep::CellsResults>(path, request.metric));
    else
      files.push_back(open_query_results(path, o.metric));
    request.files.push_back(files.back().get());
  }
  Output output(o.output);
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
  add_form_flags(flags, o.format, o.output);
  add_columns_flag(flags, "Print the columns of the CSV and exit", o.format, docs_of(compare_columns()));
  return {flags, [options] { return run(*options); }};
}

}  // namespace kvbench::app
