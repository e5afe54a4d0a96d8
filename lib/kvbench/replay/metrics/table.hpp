// SPDX-License-Identifier: Apache-2.0
// The table of attention metrics: one value for each query of each query head. Measurements, rows, columns, reports,
// comparisons and documentation follow from it; docs/add-a-metric.md adds a row.
//
// z is the answer of a method, z* exact attention, p the exact softmax row, Z the exact partition function, and V the
// values up to the query.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include <kvbench/replay/metrics/answered.hpp>
#include <kvbench/replay/metrics/info.hpp>

namespace kvbench::replay {

namespace metrics {

/// error / reference; where the reference is 0, 0 without an error and otherwise infinite.
inline double ratio(double error, double reference) {
  if (reference > 0 || std::isnan(error)) return error / reference;
  return error == 0 ? 0 : INFINITY;
}

inline double rel_err(const Answered& a) { return ratio(std::sqrt(a.squares.difference), std::sqrt(a.squares.exact)); }
inline double relerr_balancekv(const Answered& a) {
  return std::sqrt(a.squares.difference) / std::sqrt(a.squares.clamped);
}
inline double err_bound_op(const Answered& a) {
  return ratio(std::sqrt(a.squares.difference), a.exact.p_norm * a.exact.v_op);
}
inline double err_bound_fro(const Answered& a) {
  return ratio(std::sqrt(a.squares.difference), a.exact.p_norm * a.exact.v_fro);
}
inline double mass_err(const Answered& a) { return ratio(std::sqrt(a.squares.mass), std::sqrt(a.squares.exact)); }
inline double dir_err(const Answered& a) { return ratio(std::sqrt(a.squares.direction), std::sqrt(a.squares.exact)); }
inline double log_z_err(const Answered& a) {
  return a.answer.den > 0 ? std::log(a.answer.den) + a.answer.max - a.exact.log_sum_exp : NAN;
}
inline double recall(const Answered& a) {
  return a.overlap.kept > 0 ? static_cast<double>(a.overlap.common) / static_cast<double>(a.overlap.kept) : NAN;
}
inline double mass_recall(const Answered& a) {
  if (a.overlap.kept == 0) return NAN;
  return a.overlap.best_mass > 0 ? a.overlap.mass / a.overlap.best_mass : 1;
}
/// With unit weights the estimated partition function is the part of Z that the entries hold; rounding may exceed 1.
inline double kept_mass(const Answered& a) {
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
struct AttentionMetric {
  MetricInfo info;
  std::variant<double (*)(const Answered&), HitRate, MassCeiling, OfLayer> value;
};

/// Where a metric applies.
namespace applies {
inline constexpr std::string_view everywhere = "every answer";
inline constexpr std::string_view with_plain = "answers of which some entry is an original token with weight 1";
inline constexpr std::string_view with_entries = "answers of at least one entry";
inline constexpr std::string_view selections =
    "answers from tokens as they are, at least one of which the method may drop";
inline constexpr std::string_view plain = "answers from tokens as they are, with unit weights";
inline constexpr std::string_view shrinking =
    "these answers, where one set of tokens, from which tokens of the context only leave, answers all queries";
inline constexpr std::string_view clusters =
    "methods that retrieve clusters or pages, after the first R steps of a run";
inline constexpr std::string_view sketched = "layers, not single heads, of traces with residual norms and sketches";
}  // namespace applies

constexpr AttentionMetric hit_rate(std::string_view name, Index window, std::string_view meaning) {
  return {{name, meaning, Better::larger, limits::share, applies::clusters}, HitRate{window}};
}

inline constexpr auto attention_metrics = std::to_array<AttentionMetric>({
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
    hit_rate("cache_hit_r1", 1,
             "share of a step's recalled tokens in clusters that the last 1 step(s) also selected"),
    hit_rate("cache_hit_r2", 2,
             "share of a step's recalled tokens in clusters that the last 2 step(s) also selected"),
    hit_rate("cache_hit_r4", 4,
             "share of a step's recalled tokens in clusters that the last 4 step(s) also selected"),
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
inline constexpr std::size_t metric_count = attention_metrics.size();

/// A row of the table, by its number.
enum class Metric : int {};

/// The metric of this name, if there is one.
constexpr std::optional<Metric> find_metric(std::string_view name) {
  const auto named = [&](const AttentionMetric& metric) { return metric.info.name == name; };
  const auto found = std::ranges::find_if(attention_metrics, named);
  if (found == attention_metrics.end()) return std::nullopt;
  return static_cast<Metric>(found - attention_metrics.begin());
}
/// The metric that the code names. A name that the table lacks does not compile.
consteval Metric metric(std::string_view name) { return find_metric(name).value(); }

constexpr std::size_t index_of(Metric metric) { return static_cast<std::size_t>(metric); }
constexpr const MetricInfo& info_of(Metric metric) { return attention_metrics[index_of(metric)].info; }
constexpr std::string_view name_of(Metric metric) { return info_of(metric).name; }
/// Whether it is a figure of all heads of a layer, which no single head has.
constexpr bool is_of_layer(Metric metric) {
  return std::holds_alternative<OfLayer>(attention_metrics[index_of(metric)].value);
}
/// The names of all metrics, separated by commas: an attribute of raw results.
inline std::string metric_names() {
  std::string names;
  for (const AttentionMetric& metric : attention_metrics) {
    if (!names.empty()) names += ',';
    names += metric.info.name;
  }
  return names;
}

/// Values of one query row (one query head at one position). NaN where a metric does not apply.
using MetricRow = std::array<float, metric_count>;

/// Sets the metrics of single answers.
inline void set_metrics(const Answered& answered, MetricRow& row) {
  for (std::size_t m = 0; m < metric_count; ++m) {
    if (const auto* value = std::get_if<double (*)(const Answered&)>(&attention_metrics[m].value))
      row[m] = static_cast<float>((*value)(answered));
  }
}

}  // namespace kvbench::replay
