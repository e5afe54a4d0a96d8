// SPDX-License-Identifier: Apache-2.0
// The table of attention metrics: one value for each query of each query head. Measurements, rows, columns, reports,
// comparisons and documentation follow from it; docs/add-a-metric.md adds a row.
//
// z is the answer of a method, z* exact attention, p the exact softmax row, Z the exact partition function, and V the
// values up to the query.
#include <kvbench/replay/metrics/metric.hpp>

#include <cmath>
#include <stdexcept>
#include <utility>
#include <variant>

namespace kvbench::replay {
namespace {

namespace metrics {

/// error / reference; where the reference is 0, 0 without an error and otherwise infinite.
double ratio(double error, double reference) {
  if (reference > 0 || std::isnan(error)) return error / reference;
  return error == 0 ? 0 : INFINITY;
}

double rel_err(const Answered& a) { return ratio(std::sqrt(a.squares.difference), std::sqrt(a.squares.exact)); }
double relerr_balancekv(const Answered& a) { return std::sqrt(a.squares.difference) / std::sqrt(a.squares.clamped); }
double err_bound_op(const Answered& a) { return ratio(std::sqrt(a.squares.difference), a.exact.p_norm * a.exact.v_op); }
double err_bound_fro(const Answered& a) {
  return ratio(std::sqrt(a.squares.difference), a.exact.p_norm * a.exact.v_fro);
}
double mass_err(const Answered& a) { return ratio(std::sqrt(a.squares.mass), std::sqrt(a.squares.exact)); }
double dir_err(const Answered& a) { return ratio(std::sqrt(a.squares.direction), std::sqrt(a.squares.exact)); }
double log_z_err(const Answered& a) {
  return a.answer.den > 0 ? std::log(a.answer.den) + a.answer.max - a.exact.log_sum_exp : NAN;
}
double recall(const Answered& a) {
  return a.overlap.kept > 0 ? static_cast<double>(a.overlap.common) / static_cast<double>(a.overlap.kept) : NAN;
}
double mass_recall(const Answered& a) {
  if (a.overlap.kept == 0) return NAN;
  return a.overlap.best_mass > 0 ? a.overlap.mass / a.overlap.best_mass : 1;
}
/// With unit weights the estimated partition function is the part of Z that the entries hold; rounding may exceed 1.
double kept_mass(const Answered& a) {
  if (!a.plain) return NAN;
  return a.answer.den > 0 ? std::min(1.0, std::exp(log_z_err(a))) : 0;
}

}  // namespace metrics

/// The hit rate of the cache of the clusters that the last `window` steps selected (measure/cluster_cache.hpp).
struct HitRate {
  Index window;
};

/// The largest mean of `kept_mass` over the queries of a kv head (measure/mass_ceiling.hpp).
struct MassCeiling {};

/// A figure of all heads of a layer (records/results.hpp), which only its first query head has.
struct OfLayer {};

/// A row: what the metric says, and what computes it from a single answer, from the steps of a query head, from all
/// queries of a kv head, or from all heads of a layer.
struct Row {
  MetricInfo info;
  std::variant<double (*)(const Answered&), HitRate, MassCeiling, OfLayer> value;
};

/// Where a metric applies.
namespace applies {
constexpr std::string_view everywhere = "every answer";
constexpr std::string_view with_plain = "answers of which some entry is an original token with weight 1";
constexpr std::string_view with_entries = "answers of at least one entry";
constexpr std::string_view selections = "answers from tokens as they are, at least one of which the method may drop";
constexpr std::string_view plain = "answers from tokens as they are, with unit weights";
constexpr std::string_view shrinking =
    "methods that keep one set of tokens as they are and never bring a dropped one back";
constexpr std::string_view clusters = "methods that retrieve clusters or pages, after the first R steps of a run";
constexpr std::string_view sketched = "layers, not single heads, of traces with residual norms and sketches";
}  // namespace applies

constexpr Row hit_rate(std::string_view name, Index window, std::string_view meaning) {
  return {{name, meaning, Better::larger, limits::share, applies::clusters}, HitRate{window}};
}

constexpr auto table = std::to_array<Row>({
    {{.name = "rel_err",
      .meaning = "|z - z*| / |z*|",
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::everywhere},
     metrics::rel_err},
    {{.name = "relerr_balancekv",
      .meaning = "|z - z*| / |max(z*, 1e-8)|, the released BalanceKV formula",
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::everywhere},
     metrics::relerr_balancekv},
    {{.name = "err_bound_op",
      .meaning = "|z - z*| / (|p|_2 |V|_op), SubGen Eq. 3",  // arXiv 2402.06082
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::everywhere},
     metrics::err_bound_op},
    {{.name = "err_bound_fro",
      .meaning = "|z - z*| / (|p|_2 |V|_F), BalanceKV Eq. 2",  // arXiv 2502.07861
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::everywhere},
     metrics::err_bound_fro},
    {{.name = "mass_err",
      .meaning = "part of rel_err due to lost or gained attention mass",
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::with_plain},
     metrics::mass_err},
    {{.name = "dir_err",
      .meaning = "part of rel_err due to the direction of the entries that replace dropped tokens",
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::with_plain},
     metrics::dir_err},
    {{.name = "log_z_err",
      .meaning = "ln(estimated / exact partition function)",
      .better = Better::nearer_to_zero,
      .limits = limits::any_sign,
      .applies = applies::with_entries},
     metrics::log_z_err},
    {{.name = "recall",
      .meaning = "share of the top-|I| tokens by q.k among the |I| kept, over droppable tokens",
      .better = Better::larger,
      .limits = limits::share,
      .applies = applies::selections},
     metrics::recall},
    {{.name = "mass_recall",
      .meaning = "attention mass of the kept tokens / that of the top-|I|",
      .better = Better::larger,
      .limits = limits::share,
      .applies = applies::selections},
     metrics::mass_recall},
    hit_rate("cache_hit_r1", 1, "share of a step's recalled tokens in clusters that the last 1 step(s) also selected"),
    hit_rate("cache_hit_r2", 2, "share of a step's recalled tokens in clusters that the last 2 step(s) also selected"),
    hit_rate("cache_hit_r4", 4, "share of a step's recalled tokens in clusters that the last 4 step(s) also selected"),
    {{.name = "kept_mass",
      .meaning = "share of exact attention on the tokens that answer, those that the harness keeps included",
      .better = Better::larger,
      .limits = limits::share,
      .applies = applies::plain},
     metrics::kept_mass},
    {{.name = "mass_ceiling",
      .meaning =
          "largest mean of kept_mass over the queries of a kv head with as many tokens of the context in one set",
      .better = Better::larger,
      .limits = limits::share,
      .applies = applies::shrinking},
     MassCeiling{}},
    {{.name = "residual_err",
      .meaning = "|W_O (z - z*)| / |x| over all heads of a layer, x the residual stream before it",
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::sketched},
     OfLayer{}},
    {{.name = "stream_err",
      .meaning = "|W_O (z - z*)| over all heads of a layer, relative to the stream after its exact attention: "
                 "sqrt(|x|^2 + |W_O z*|^2)",
      .better = Better::smaller,
      .limits = limits::at_least_zero,
      .applies = applies::sketched},
     OfLayer{}},
});
static_assert(table.size() <= Metric::most);

constexpr std::optional<Metric> find(std::string_view name) {
  const auto found = std::ranges::find_if(table, [&](const Row& row) { return row.info.name == name; });
  if (found == table.end()) return std::nullopt;
  return Metric(static_cast<std::size_t>(found - table.begin()));
}
consteval Metric named(std::string_view name) { return find(name).value(); }
static_assert(named("rel_err").row() == 0);  // the one that is compared where none is named

constexpr auto numbers = [] {
  auto all = [&]<std::size_t... row>(std::index_sequence<row...>) { return std::array{Metric(row)...}; };
  return all(std::make_index_sequence<table.size()>());
}();

}  // namespace

constinit const Metric Metric::rel_err = named("rel_err");
constinit const Metric Metric::relerr_balancekv = named("relerr_balancekv");
constinit const Metric Metric::err_bound_op = named("err_bound_op");
constinit const Metric Metric::err_bound_fro = named("err_bound_fro");
constinit const Metric Metric::mass_err = named("mass_err");
constinit const Metric Metric::dir_err = named("dir_err");
constinit const Metric Metric::log_z_err = named("log_z_err");
constinit const Metric Metric::recall = named("recall");
constinit const Metric Metric::mass_recall = named("mass_recall");
constinit const Metric Metric::cache_hit_r1 = named("cache_hit_r1");
constinit const Metric Metric::cache_hit_r2 = named("cache_hit_r2");
constinit const Metric Metric::cache_hit_r4 = named("cache_hit_r4");
constinit const Metric Metric::kept_mass = named("kept_mass");
constinit const Metric Metric::mass_ceiling = named("mass_ceiling");
constinit const Metric Metric::residual_err = named("residual_err");
constinit const Metric Metric::stream_err = named("stream_err");

std::span<const Metric> all_metrics() { return numbers; }
std::optional<Metric> find_metric(std::string_view name) { return find(name); }
const MetricInfo& info_of(Metric metric) { return table[metric.row()].info; }

bool is_of_layer(Metric metric) { return std::holds_alternative<OfLayer>(table[metric.row()].value); }

std::optional<Index> hit_rate_window(Metric metric) {
  const auto* rate = std::get_if<HitRate>(&table[metric.row()].value);
  return rate != nullptr ? std::optional(rate->window) : std::nullopt;
}

std::string metric_names() {
  std::string names;
  for (const Row& row : table) {
    if (!names.empty()) names += ',';
    names += row.info.name;
  }
  return names;
}

void set_metrics(const Answered& answered, MetricRow& row) {
  for (const Metric metric : numbers) {
    if (const auto* value = std::get_if<double (*)(const Answered&)>(&table[metric.row()].value))
      row[metric] = static_cast<float>((*value)(answered));
  }
}

}  // namespace kvbench::replay
