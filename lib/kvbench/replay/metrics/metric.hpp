// SPDX-License-Identifier: Apache-2.0
// Attention metrics as everybody but their table sees them: numbers, names, and a value for each. What they mean and
// what computes them is in table.cpp, so that a new one recompiles nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <kvbench/replay/metrics/answered.hpp>
#include <kvbench/replay/metrics/info.hpp>

namespace kvbench::replay {

/// A row of the table.
class Metric {
 public:
  static constexpr std::size_t most = 20;  ///< rows that a table may have

  constexpr explicit Metric(std::size_t row) : row_(row) {}
  constexpr std::size_t row() const { return row_; }
  friend constexpr auto operator<=>(Metric, Metric) = default;

  /// Those that code names; table.cpp does not compile where the table lacks one.
  static const Metric rel_err, relerr_balancekv, err_bound_op, err_bound_fro, mass_err, dir_err, log_z_err, recall,
      mass_recall, cache_hit_r1, cache_hit_r2, cache_hit_r4, kept_mass, mass_ceiling, residual_err, stream_err;

 private:
  std::size_t row_;
};

/// In the order of the table.
std::span<const Metric> all_metrics();
/// The metric of this name, if there is one.
std::optional<Metric> find_metric(std::string_view name);

const MetricInfo& info_of(Metric metric);
inline std::string_view name_of(Metric metric) { return info_of(metric).name; }
/// Whether it is a figure of all heads of a layer, which no single head has.
bool is_of_layer(Metric metric);
/// The number of steps R of the cache of recent clusters (measure/cluster_cache.hpp) of which it is the hit rate.
std::optional<Index> hit_rate_window(Metric metric);
/// The names of all metrics, separated by commas: an attribute of raw results.
std::string metric_names();

/// A value for each metric.
template <class T>
class PerMetric {
 public:
  T& operator[](Metric metric) { return values_[metric.row()]; }
  const T& operator[](Metric metric) const { return values_[metric.row()]; }
  auto begin() { return values_.begin(); }
  auto begin() const { return values_.begin(); }
  auto end() { return values_.begin() + static_cast<std::ptrdiff_t>(all_metrics().size()); }
  auto end() const { return values_.begin() + static_cast<std::ptrdiff_t>(all_metrics().size()); }

  void fill(const T& value) { values_.fill(value); }

 private:
  std::array<T, Metric::most> values_{};
};

/// Values of one query row (one query head at one position). NaN where a metric does not apply.
using MetricRow = PerMetric<float>;

/// Sets the metrics of single answers.
void set_metrics(const Answered& answered, MetricRow& row);

}  // namespace kvbench::replay
