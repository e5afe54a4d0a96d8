// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/replay/records/figures.hpp>
#include <kvbench/report/columns/shared.hpp>

namespace kvbench::report {
namespace {

using replay::Record;
using RecordColumn = Column<Record>;
using RecordColumns = SharedColumns<Record>;

bool is_ok(const Record& r) { return r.status == replay::Status::ok; }

/// A number that only rows with status ok have.
template <class F>
Value<Record> where_ok(F of) {
  return value_where<Record>(is_ok, of);
}

/// "" for methods without randomness.
Value<Record> seed_value() {
  Value<Record> seed = value_of(&Record::seed, "all");
  return {.print = [print = seed.print](const Record& r) { return r.seeded ? print(r) : ""; },
          .parse =
              [parse = seed.parse](Record& r, const CsvCell& cell) {
                r.seeded = !cell.text.empty();
                parse(r, cell);
              }};
}

/// A member that tells rows apart.
template <class F>
Value<Record> needed_of(F member) {
  return needed(value_where<Record>(always, member));
}

void add_identity(RecordColumns& c) {
  c.identity(Tells::section, {"run", "run of a sweep file; empty elsewhere", value_of(&Record::run), "text"});
  c.identity(Tells::place, {"trace", "file name of the trace", needed_of(&Record::trace), "text"});
  c.identity(Tells::place,
             {"sha256", "first 12 digits of the SHA-256 of the trace", needed_of(&Record::sha256), "text"});
  c.add({{"model", "model that the trace came from", needed_of(&Record::model), "text"}});
  c.channels();
  c.identity(Tells::place, {"prompt", "prompt group, or all", needed_of(&Record::prompt), "text"});
  c.add({{"prompt_name", "name of the text of the prompt; empty for all, and where the trace has none",
          value_of(&Record::prompt_name), "text"}});
  c.identity(Tells::place,
             {"layer", "layer of the model, or all", needed(optional_value<Record>(&Record::layer, "all")), "integer"});
  c.identity(Tells::place, {"kv_head", "kv head, or all", needed(value_of(&Record::kv_head, "all")), "integer"});
  c.identity(Tells::place, {"head", "query head, or all", needed(value_of(&Record::query_head, "all")), "integer"});
  c.identity(Tells::query,
             {"query", "position of the query, or all", needed(value_of(&Record::query, "all")), "integer"});
  c.identity(Tells::section, {"protocol", "prefill, decode or stream", needed_of(&Record::protocol), "text"});
  c.identity(Tells::section, {"device", "back end that computed the row; for a GPU also its model",
                              needed_of(&Record::device), "text"});
  c.configuration();
  c.identity(Tells::configuration,
             {"seed", "seed, all, or empty for methods without randomness", seed_value(), "integer"});
  c.add({{"dense", "1 where the layer was kept exact by --dense-layers", value_of(&Record::dense), "integer"}});
  c.status("why the row is not ok, or what it leaves out, and notes of the method");
}

void add_kept(RecordColumns& c) {
  c.add({{"query_rows", "number of (query, query head, seed) triples whose errors the row summarises",
          needed(value_of(&Record::query_rows)), "integer"},
         {"layers", "number of layers whose bytes the row counts", value_of(&Record::layer_count), "integer"},
         {"compressed_layers", "number of these that the method compressed, whose errors the row summarises",
          printed<Record>([](const Record& r) { return fmt::format("{}", r.compressed_layers.size()); }), "integer"},
         {"model_layers", "number of layers of the model that have a cache; 0: some of these, where others have none",
          value_of(&Record::model_layers), "integer"}});
  c.number("context_tokens", "tokens",
           "tokens that the budget refers to: the context, without those of --protect-outside",
           needed(where_ok(&Record::context_tokens)));
  c.tokens(is_ok, true);
  c.number("kept_fraction", "", "kept_tokens / context_tokens",
           where_ok([](const Record& r) { return r.kept_tokens / r.context_tokens; }));
  c.add(
      {{"kept_by_span",
        "share of the tokens of each span of the context (docs/traces.md) that the cache holds at the last query, such "
        "as `system 1.000, user 0.312`: mean over kv heads and layers; spans of one name are one; empty where the "
        "trace has none, and where the method merges tokens or chooses among them for each query",
        value_of(&Record::kept_by_span), "text"},
       {"lost_by_span", "the same, of the tokens that no kv head of the layers of the row holds",
        value_of(&Record::lost_by_span), "text"}});
  c.held(is_ok, "keys and values held, mean per kv head");
  c.number("compression", "", "full_bytes / total_bytes",
           where_ok([](const Record& r) { return r.bytes.full / r.bytes.of(CostKind::memory); }));
  c.moved(is_ok);
  c.number("peak_bytes", "B",
           "largest memory allocated while compressing one head, in addition to the arrays of the trace (fp32)",
           where_ok(&Record::peak_bytes));
  c.list.push_back(
      {"costs",
       "alone: seconds, flops and peak_bytes are those of the configuration by itself; shared: it ran with "
       "other budgets or seeds of its method, and work in common counts for the one that was computed first "
       "(see --standalone)",
       {[](const Record& r) { return std::string(r.alone ? "alone" : "shared"); },
        [](Record& r, const CsvCell& cell) { r.alone = cell.text != "shared"; }},
       "text"});
  c.number("compress_flops", "flop", "declared operations of compression, sum over heads, mean over seeds",
           where_ok(&Record::compress_flops));
  c.number("attend_flops", "flop", "declared operations of answering, sum over heads, mean over seeds",
           where_ok(&Record::attend_flops));
}

/// The mean of a metric and the quantile of its bad tail; `main`: every figure of a summary.
template <class F>
void add_summary(std::vector<RecordColumn>& c, const replay::MetricInfo& metric, bool main, F of) {
  const auto add = [&](const char* suffix, const char* what, double replay::Summary::*field, bool is_needed = false) {
    Value<Record> value = where_ok([ of, field ](auto& r) -> auto& { return of(r).*field; });
    value.needed = is_needed;
    c.push_back({fmt::format("{}{}", metric.name, suffix), fmt::format("{}{}", metric.meaning, what), std::move(value),
                 "number"});
    c.back().limits = metric.limits;
  };
  add("_mean", ": mean", &replay::Summary::mean, main || metric.name == name_of(replay::Metric::recall));
  const std::optional<replay::Metric> known = replay::find_metric(metric.name);
  if (main || (known && is_of_layer(*known))) add("_rms", ": root mean square", &replay::Summary::rms);
  if (main) add("_p50", ": median", &replay::Summary::p50);
  if (main) add("_p90", ": 90 % quantile", &replay::Summary::p90);
  if (metric.better == replay::Better::larger)
    add("_p1", ": 1 % quantile", &replay::Summary::p1);
  else
    add("_p99", ": 99 % quantile", &replay::Summary::p99);
  if (!main) return;
  add("_max", ": largest", &replay::Summary::max);
  add("_lo", ": lower end of the 95 % bootstrap interval of the mean; empty where the row has fewer than two blocks",
      &replay::Summary::lo, true);
  add("_hi", ": upper end of the 95 % bootstrap interval of the mean", &replay::Summary::hi, true);
}

/// A figure and the ends of its interval. `lower`: what the first end is.
template <class F, class I>
void add_estimate(std::vector<RecordColumn>& c, const std::string& name, const char* doc, F figure, const char* lower,
                  I interval) {
  c.push_back({name, doc, where_ok(figure), "number"});
  c.push_back(
      {name + "_lo", lower, where_ok([interval](auto& r) -> auto& { return std::invoke(interval, r).lo; }), "number"});
  c.push_back({name + "_hi", "upper end of this interval",
               where_ok([interval](auto& r) -> auto& { return std::invoke(interval, r).hi; }), "number"});
}

/// "outside: layer 0, error 0.64 of the stream; all layers".
Value<Record> about_value() {
  constexpr std::string_view prefix = "outside: ", separator = "; ";
  return {.print =
              [=](const Record& r) {
                if (!is_ok(r) || !is_outside(r.kl)) return is_ok(r) ? r.kl.about : "";
                return fmt::format("{}{}{}{}", prefix, r.kl.outside, separator, r.kl.about);
              },
          .parse =
              [=](Record& r, const CsvCell& cell) {
                const std::string& text = cell.text;
                const std::size_t end = text.find(separator);
                const bool outside = text.starts_with(prefix) && end != std::string::npos;
                r.kl.outside = outside ? text.substr(prefix.size(), end - prefix.size()) : "";
                r.kl.about = outside ? text.substr(end + separator.size()) : text;
              }};
}

/// Columns of what the errors do to the output of the model.
void add_predicted_kl(std::vector<RecordColumn>& c) {
  const std::size_t first = c.size();
  add_estimate(
      c, "kl_predicted",
      "predicted KL of the model's next-token distributions, in nats per scored token, behind a context that is read "
      "exactly, from the probes of the trace, times the ratio that its anchors have; empty where it has none",
      [](auto& r) -> auto& { return r.kl.mean; },
      "lower end of its 95 % interval over prompts (log-normal, modified Cox), and over the layers of a sample; of one "
      "prompt over its probes or the layers of a sample",
      [](auto& r) -> auto& { return r.kl.interval; });
  c.push_back(
      {"kl_noise",
       "standard error of kl_predicted that the probes of these prompts leave, relative to it; the interval has "
       "it too",
       where_ok([](auto& r) -> auto& { return r.kl.noise; }), "number"});
  c.push_back({"kl_measured",
               "KL that the model itself had for this configuration on these texts, in nats per scored token: from the "
               "anchors of the trace; empty where it was not measured",
               where_ok([](auto& r) -> auto& { return r.kl.measured; }), "number"});
  for (std::size_t i = first; i < c.size(); ++i) c[i].limits = replay::limits::at_least_zero;
  c.push_back({"kl_about",
               "layers whose compression kl_predicted is about; with `large` above 0.15 nats, where it does not say "
               "how large the damage is; begins with `outside` where a layer's stream_err_rms is above 0.3, where it "
               "is no prediction: measure; `region unknown` without sketches, where nothing says so",
               about_value(), "text"});
}

/// Record::geomean of rows that are ranked by rel_err, or by another figure.
Value<Record> geomean_where(bool rel_err) {
  const auto has = [rel_err](const Record& r) {
    return is_ok(r) && rel_err == (&r.figure() == &replay::figure_of({}));
  };
  Value<Record> value = value_where<Record>(has, &Record::geomean);
  value.parse = [](Record& r, const CsvCell& cell) {
    if (!cell.text.empty()) r.geomean = cell.number();
  };
  return value;
}

/// "kl_predicted, residual_err (its root mean square) or rel_err"
std::string names_of_figures() {
  std::vector<std::string> names;
  for (const replay::RankingFigure& figure : replay::ranking_figures)
    names.push_back(fmt::format("{}{}", figure.name, figure.squares ? " (its root mean square)" : ""));
  const std::string last = std::move(names.back());
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

/// Columns of the paired comparison with the best row of the group.
void add_best(std::vector<RecordColumn>& c) {
  c.push_back({"ranked_by",
               fmt::format("figure by which the rows of this trace, prompt, layer and budget are ranked: {}; empty: "
                           "they are not ranked",
                           names_of_figures()),
               value_of(&Record::ranked_by), "text"});
  c.push_back({"best",
               "configuration with the lowest geometric mean of this figure, or mean where this is empty, for this "
               "trace, prompt, layer and budget, except exact, oracles and rows calibrated on their own text",
               value_of(&Record::best), "text"});
  add_estimate(
      c, "diff_best",
      "mean of the figure, of residual_err its square, minus that of the best, paired by what was seen: query, "
      "query head and seed, or probe and seed",
      &Record::diff_best, "lower end of its 95 % bootstrap interval; empty where the row has fewer than two blocks",
      &Record::diff_best_interval);
  const std::size_t ratios = c.size();
  c.push_back({"rel_err_geomean",
               "geometric mean over layers and texts of rel_err on each, by which rows are ranked; empty where these "
               "are no sample of others, or where an error is 0",
               geomean_where(true), "number"});
  c.push_back(
      {"ranked_geomean",
       "the same of another figure in ranked_by: geometric mean over texts of the figure of all layers of each, "
       "by which rows are ranked; empty with fewer than three texts, or where it is 0",
       geomean_where(false), "number"});
  add_estimate(c, "ratio_best", "this geometric mean divided by that of the best", &Record::ratio_best,
               "lower end of its interval, for layers and texts like these, at the level at which Holm tested the row: "
               "it holds 1 where tied is 1",
               &Record::ratio_best_interval);
  for (std::size_t i = ratios; i < c.size(); ++i) c[i].limits = replay::limits::at_least_zero;
  c.push_back({"tested_over", "units of the test behind tied: layers and texts, blocks of queries, or probes",
               value_of(&Record::tested_over), "text"});
  c.push_back(
      {"tied",
       "1 where the test does not distinguish the row from the best (Holm over the group at 5 %), else 0; empty "
       "where nothing was tested",
       value_of(&Record::tied, ""), "integer"});
  c.push_back(
      {"blocks", "independent blocks of 16 neighbouring queries, the units of a comparison by errors within texts",
       value_where<Record>([](const Record& r) { return is_ok(r) && !r.query_head; }, &Record::blocks), "integer"});
}

std::vector<RecordColumn> make_record_columns() {
  RecordColumns shared;
  add_identity(shared);
  add_kept(shared);
  std::vector<RecordColumn> c = std::move(shared.list);
  for (const replay::Metric m : replay::all_metrics()) {
    const bool main = m == replay::Metric::rel_err;
    add_summary(
        c, info_of(m), main, [m](auto& r) -> auto& { return r.metrics[m]; });
    if (main) {
      add_summary(
          c,
          {.name = "rel_err_fro",
           .meaning = "Frobenius norm of the differences over the queries / of the exact outputs, by query "
                      "head",
           .limits = replay::limits::at_least_zero},
          false, [](auto& r) -> auto& { return r.rel_err_fro; });
      add_predicted_kl(c);
      add_best(c);
    }
  }
  c.push_back(needed(version_column<Record>("text")));
  c.push_back(needed(commit_column<Record>("text")));
  c.push_back({"isa", "instruction set of the kernels", needed_of(&Record::isa), "text"});
  const auto time = [&](const char* key, const char* doc, double Record::*field) {
    c.push_back({key, doc, where_ok(field), "number", "s", true});
  };
  time("compress_s", "time of compression, sum over heads, mean over seeds", &Record::compress_s);
  time("attend_s",
       "time of answering in addition to the exact pass, 0 where a method other than exact keeps all tokens; the time "
       "of attention that several budgets share is divided in proportion to their entries; sum over heads, mean over "
       "seeds",
       &Record::attend_s);
  time("exact_s", "time of the exact pass, sum over heads", &Record::exact_s);
  return c;
}

}  // namespace

std::span<const RecordColumn> record_columns() {
  static const std::vector<RecordColumn> table = make_record_columns();
  return table;
}

}  // namespace kvbench::report
