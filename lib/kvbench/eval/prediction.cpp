// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/prediction.hpp>

#include <algorithm>
#include <cassert>
#include <set>

#include <kvbench/eval/statistics.hpp>
#include <kvbench/kernels/philox.hpp>

namespace kvbench {
namespace {

constexpr std::uint32_t prediction_draws = 3;  // 0 to 2: bootstrap and sign flips of lib/kvbench/core

std::size_t documents_in(const PredictionGroup& group) { return group.rows.empty() ? 0 : group.rows.front().error.size(); }

/// How often each document of each group counts.
using Weights = std::vector<std::vector<double>>;

Weights resample_documents(std::span<const PredictionGroup> groups, std::uint32_t resample) {
  Weights weights;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const auto count = static_cast<std::uint32_t>(documents_in(groups[g]));
    weights.emplace_back(count, 0.0);
    for (std::uint32_t i = 0; i < count; ++i) {
      const PhiloxBlock draw = philox4x32({{resample, i, prediction_draws, g}}, {});
      weights.back()[std::uint64_t{draw.x[0]} * count >> 32] += 1;
    }
  }
  return weights;
}

struct MeanPair {
  const PredictionRow* row;
  double error, damage;
};

/// The weighted means of the rows that have any, without those of one method.
std::vector<MeanPair> means_of(const PredictionGroup& group, const std::vector<double>& weights, const std::string* without) {
  std::vector<MeanPair> out;
  for (const PredictionRow& row : group.rows) {
    if (without != nullptr && row.method == *without) continue;
    double error = 0, damage = 0, count = 0;
    for (std::size_t d = 0; d < weights.size(); ++d) {
      if (weights[d] == 0 || !std::isfinite(row.error[d]) || !std::isfinite(row.damage[d])) continue;
      error += weights[d] * row.error[d], damage += weights[d] * row.damage[d], count += weights[d];
    }
    if (count > 0) out.push_back({&row, error / count, damage / count});
  }
  return out;
}

struct Order {
  double spearman = 0, groups = 0;
  double agreeing = 0, pairs = 0;
  double mean_spearman() const { return groups == 0 ? NAN : spearman / groups; }
  double agreement() const { return pairs == 0 ? NAN : agreeing / pairs; }
};

void add_pairs(const std::vector<MeanPair>& rows, Order& order) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const MeanPair &a = rows[i], &b = rows[j];
      if (a.row->budget != b.row->budget || a.row->method == b.row->method || a.damage == b.damage) continue;
      order.pairs += 1;
      order.agreeing += a.error == b.error ? 0.5 : (a.error < b.error) == (a.damage < b.damage);
    }
  }
}

Order order_of(std::span<const PredictionGroup> groups, const Weights& weights, const std::string* without = nullptr) {
  Order order;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<MeanPair> rows = means_of(groups[g], weights[g], without);
    std::vector<double> errors, damages;
    for (const MeanPair& row : rows) errors.push_back(row.error), damages.push_back(row.damage);
    if (const double rho = spearman(errors, damages); !std::isnan(rho)) order.spearman += rho, order.groups += 1;
    add_pairs(rows, order);
  }
  return order;
}

/// The figures of several orders that exist.
struct Figures {
  std::vector<double> spearman, agreement;
  void add(const Order& order) {
    if (order.groups > 0) spearman.push_back(order.mean_spearman());
    if (order.pairs > 0) agreement.push_back(order.agreement());
  }
};

Interval quantiles(const std::vector<double>& values, double lo, double hi) {
  return values.empty() ? Interval{NAN, NAN} : Interval{quantile(values, lo), quantile(values, hi)};
}

}  // namespace

Prediction predict(std::span<const PredictionGroup> groups, int resamples) {
  Prediction out;
  Weights once;
  std::set<std::string> methods;
  std::size_t fewest = SIZE_MAX;
  for (const PredictionGroup& group : groups) {
    once.emplace_back(documents_in(group), 1.0);
    fewest = std::min(fewest, documents_in(group));
    out.documents += documents_in(group);
    out.configurations += means_of(group, once.back(), nullptr).size();
    for (const PredictionRow& row : group.rows) {
      assert(row.error.size() == documents_in(group) && row.damage.size() == documents_in(group));
      methods.insert(row.method);
    }
  }
  const Order order = order_of(groups, once);
  out.spearman = order.mean_spearman(), out.agreement = order.agreement();
  out.pairs = static_cast<std::size_t>(order.pairs);

  Figures without_one;
  for (const std::string& method : methods) without_one.add(order_of(groups, once, &method));
  out.spearman_without_one = quantiles(without_one.spearman, 0, 1);
  out.agreement_without_one = quantiles(without_one.agreement, 0, 1);

  if (groups.empty() || fewest < 2) return out;
  Figures drawn;
  for (int r = 0; r < resamples; ++r) drawn.add(order_of(groups, resample_documents(groups, static_cast<std::uint32_t>(r))));
  out.spearman_interval = quantiles(drawn.spearman, 0.025, 0.975);
  out.agreement_interval = quantiles(drawn.agreement, 0.025, 0.975);
  return out;
}

std::vector<double> amplification(std::span<const double> drift, std::span<const double> residual) {
  assert(drift.size() == residual.size());
  std::vector<double> out;
  double added = 0;
  for (std::size_t l = 0; l < drift.size(); ++l) {
    if (!std::isnan(residual[l])) added += residual[l] * residual[l];
    out.push_back(added > 0 ? drift[l] / std::sqrt(added) : NAN);
  }
  return out;
}

Additivity additivity(std::span<const double> sum_of_single, std::span<const double> together) {
  assert(sum_of_single.size() == together.size());
  double single = 0, all = 0;
  for (std::size_t d = 0; d < together.size(); ++d) single += sum_of_single[d], all += together[d];
  if (together.empty() || all == 0) return {};
  return {single / all, bootstrap_mean(sum_of_single, together, 1)};
}

}  // namespace kvbench
