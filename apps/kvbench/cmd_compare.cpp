// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/compare/predictions.hpp>
#include <kvbench/config/sweep.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/report/read/table_results.hpp>
#include <kvbench/sweep/cells_results.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/run_flags.hpp>

namespace kvbench::app {
namespace {

const std::map<std::string, compare::Span> spans = {{"layer", compare::Span::layer},
                                                    {"head", compare::Span::head},
                                                    {"prompt", compare::Span::prompt},
                                                    {"all", compare::Span::all}};

struct CompareFlags {
  std::vector<std::string> files, labels;
  std::string a, b, metric, sweep, output, format;
  compare::Span span = compare::Span::all;
  CLI::Option* span_flag = nullptr;
};

/// The position of --metric among the metrics of the files; 0 where it is not given.
std::size_t position_of_metric(const std::string& name, const std::vector<std::string>& names, const char* unit) {
  if (name.empty()) return 0;
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error("--metric: there is no metric '{}' per {}.{} The metrics are: {}", name, unit, did_you_mean(name, names),
              fmt::join(names, ", "));
}

replay::MetricInfo query_metric(const std::string& name) {
  std::vector<std::string> names;
  for (const replay::Metric metric : replay::all_metrics()) names.emplace_back(name_of(metric));
  names.emplace_back(replay::predicted_kl_info.name);
  return *compare::find_query_metric(names[position_of_metric(name, names, "query")]);
}

/// The figures of damage by which documents are compared, the default first.
std::vector<eval::Damage> document_figures() {
  std::vector<eval::Damage> all;
  for (std::size_t f = 0; f < eval::damage_count; ++f) {
    if (!eval::damage_figures[f].compared_as.empty()) all.push_back(static_cast<eval::Damage>(f));
  }
  return all;
}

std::vector<std::string> document_metrics() {
  std::vector<std::string> names;
  for (const eval::Damage figure : document_figures()) names.emplace_back(figure_of(figure).compared_as);
  return names;
}

/// All metrics: of queries, and of documents.
MetricGroups metric_groups() {
  MetricGroups groups(2);
  for (const replay::Metric metric : replay::all_metrics()) groups[0].push_back(info_of(metric));
  groups[0].push_back(replay::predicted_kl_info);
  for (const eval::Damage figure : document_figures()) groups[1].push_back(figure_of(figure).compared());
  return groups;
}

/// "kl (default), nll, ... or key_nll".
std::string document_metric_names() {
  const std::vector<std::string> all = document_metrics();
  return fmt::format("{} (default), {} or {}", all.front(), fmt::join(std::span(all).subspan(1, all.size() - 2), ", "),
                     all.back());
}

/// Whether the files are tables of kveval, with values per document. Throws Error where only some are, or one cannot be
/// read.
bool are_evaluations(const std::vector<std::string>& files) {
  for (const std::string& path : files) regular_file_size(InputDescriptor(path), path, "a table or the file of --raw");
  const auto table = std::ranges::find_if(files, report::is_eval_table);
  if (table == files.end()) return false;
  const auto other = std::ranges::find_if_not(files, report::is_eval_table);
  if (other == files.end()) return true;
  throw Error("{} is a table of kveval, with values per document, and {} is not; compare them in separate commands",
              *table, *other);
}

/// The files, open for one metric.
class OpenResults {
 public:
  OpenResults(const std::vector<std::string>& paths, const replay::MetricInfo& metric, compare::Span span) {
    for (const std::vector<std::string>& shards : sweep::with_shards_joined(paths)) {
      // Predictions are checked by the error in the stream.
      auto results = open(shards, replay::find_metric(metric.name).value_or(replay::Metric::stream_err));
      if (is_prediction(metric)) results = std::make_unique<compare::Predictions>(std::move(results), span);
      add(std::move(results));
    }
  }
  OpenResults(const std::vector<std::string>& paths, eval::Damage metric) {
    for (const std::string& path : paths) add(std::make_unique<report::DocumentResults>(path, metric));
  }
  std::vector<const compare::QueryResults*> files;

 private:
  static std::unique_ptr<compare::QueryResults> open(const std::vector<std::string>& paths, replay::Metric metric) {
    if (sweep::is_cells_file(paths.front())) return std::make_unique<sweep::CellsResults>(paths, metric);
    return report::open_query_results(paths.front(), name_of(metric));
  }

  void add(std::unique_ptr<compare::QueryResults> results) {
    files.push_back(results.get());
    owners_.push_back(std::move(results));
  }
  std::vector<std::unique_ptr<compare::QueryResults>> owners_;
};

Output open_output(const CompareFlags& o) {
  std::vector<NamedFile> inputs{{"the sweep file", o.sweep}};
  for (const std::string& file : o.files) inputs.push_back({"the results", file});
  check_distinct(std::vector<NamedFile>{{"-o", o.output}}, inputs);
  return Output(o.output);
}

/// The claims of a sweep file, tested on these results.
int test_claims(const CompareFlags& o) {
  if (are_evaluations(o.files)) throw Error("--sweep: claims are about results of replay, not about tables of kveval");
  Output output = open_output(o);
  std::vector<compare::ClaimResult> results;
  for (const config::Published& published : config::read_sweep(o.sweep).published) {
    const OpenResults results_of_metric(o.files, published.claim.metric, o.span);
    results.push_back(test_claim(published.claim, results_of_metric.files));
  }
  if (results.empty()) throw Error("{}: states no claim; add a block [[published]] with relations", o.sweep);
  output.finish(o.format == "md" || shows_table(o.format, output) ? verdict_text(results)
                                                                  : report::claims_table(o.format, results));
  return done;
}

OpenResults open_results(const CompareFlags& o, replay::MetricInfo& metric) {
  if (!are_evaluations(o.files)) {
    metric = query_metric(o.metric);
    if (o.span == compare::Span::head && (is_prediction(metric) || is_of_layer(*replay::find_metric(metric.name))))
      throw Error("--by head: {} is a figure of all heads of a layer; compare by layer, prompt or all", o.metric);
    OpenResults results(o.files, metric, o.span);
    for (const compare::QueryResults* file : results.files) {
      if (is_prediction(metric) && file->places().empty())
        throw Error(
            "{}: has no sums of probes, by which {} pairs methods; replay a trace with probes (kvbench-dump-hf "
            "--probes) such that its scored tokens are evaluated, with --raw or in a sweep",
            file->path(), metric.name);
    }
    return results;
  }
  if (o.span_flag->count() > 0)
    throw Error(
        "--by: tables of kveval are compared by task, over all documents; only results of replay have layers and "
        "heads");
  const eval::Damage chosen = document_figures()[position_of_metric(o.metric, document_metrics(), "document")];
  metric = figure_of(chosen).compared();
  return {o.files, chosen};
}

int run(const CompareFlags& o) {
  if (o.files.empty())
    throw Error(
        "give a file of results: one written with replay --raw, a CSV with --rows query, the cells file of a sweep, or "
        "a table of kveval --per-document");
  for (const std::string& file : o.files) {
    if (is_method(file))
      throw Error("{0}: there is no such file; name methods with --a and --b, as in --a {0} --b random", file);
  }
  if (!o.sweep.empty()) return test_claims(o);
  Output output = open_output(o);
  compare::ComparisonRequest request{.files = {}, .a = {}, .b = {}, .metric = {}, .span = o.span};
  if (!o.a.empty()) request.a = compare::parse_configuration(o.a, "--a");
  if (!o.b.empty()) request.b = compare::parse_configuration(o.b, "--b");
  const OpenResults results = open_results(o, request.metric);
  request.files = results.files;
  std::vector<compare::Comparison> compared = compare::compare(request);
  report::Labels(o.labels).apply(compared);
  const std::span<const compare::Comparison> rows(compared);
  const bool table = shows_table(o.format, output);
  output.finish(o.format == "md" ? report::markdown(report::comparison_blocks(rows))
                : table          ? report::terminal_text(report::comparison_blocks(rows))
                                 : report::table_of(o.format, report::compare_columns(), rows));
  return done;
}

}  // namespace

Command add_compare(CLI::App& app) {
  CLI::App* flags = app.add_subcommand(
      "compare", "Test which differences between methods are significant, on paired queries or documents");
  auto options = std::make_shared<CompareFlags>();
  CompareFlags& o = *options;
  flags->add_option(
      "results", o.files,
      "Files written with replay --raw, CSV files with --rows query, or cells files of a sweep or its shards; or "
      "tables of kveval --per-document");
  const char* syntax = "such as subgen, subgen[t=4], uniform@25% or 2:uniform (of the second file)";
  flags->add_option("--a", o.a, fmt::format("A configuration: [FILE:]METHOD[PARAMS][@BUDGET], {}", syntax));
  flags->add_option("--b", o.b,
                    "The other configuration (default: all others; without --a and --b: all against the best one)");
  flags->add_option(
      "--metric", o.metric,
      "Metric with values per query (default: rel_err), or kl_predicted of raw results or cells of a trace with "
      "probes; of tables of kveval " +
          document_metric_names());
  o.span_flag = add_choice(flags, "--by", o.span, spans,
                           "Scope of one comparison: all (the default), prompt, layer or head (query head)");
  CLI::Option* sweep =
      flags->add_option("--sweep", o.sweep, "Test the claims of this sweep file, with the test of the sweep itself");
  for (const char* other : {"--a", "--b", "--metric", "--by"}) sweep->excludes(other);
  add_form_flags(flags, o.format, o.output);
  add_label_flag(flags, o.labels, "the rows");
  add_columns_flag(flags, "Print the columns of the CSV and exit", o.format, docs_of(report::compare_columns()));
  add_page_flag(
      flags, "--metrics", "Print the metrics and exit", o.format, [] { return metrics_text(metric_groups()); },
      [] { return metrics_markdown(metric_groups()); });
  return {flags, [options] { return run(*options); }};
}

}  // namespace kvbench::app
