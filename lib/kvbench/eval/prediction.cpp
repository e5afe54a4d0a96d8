// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/prediction.hpp>

#include <algorithm>
#include <cassert>
#include <set>

#include <kvbench/eval/statistics.hpp>
#include <kvbench/kernels/philox.hpp>

namespace kvbench::eval {
namespace {

constexpr std::uint32_t prediction_draws = 3;  // 0 to 2: bootstrap and sign flips of lib/kvbench/core

std::size_t documents_in(const PredictionGroup& group) {
  return group.rows.empty() ? 0 : group.rows.front().error.size();
}

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

/// A task with the pairs of rows whose order is compared, found once for all resamples.
struct Task {
  const PredictionGroup* group;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;

  explicit Task(const PredictionGroup& g) : group(&g) {
    for (std::size_t i = 0; i < g.rows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const PredictionRow &a = g.rows[i], &b = g.rows[j];
        if (a.budget == b.budget && a.method != b.method) pairs.emplace_back(i, j);
      }
    }
  }
};

/// The weighted means of the rows, NaN where a row has none or is of the method that is left out.
struct Means {
  std::vector<double> error, damage;
  Means(const PredictionGroup& group, const std::vector<double>& weights, const std::string* without) {
    for (const PredictionRow& row : group.rows) {
      double of_error = 0, of_damage = 0, count = 0;
      for (std::size_t d = 0; d < weights.size(); ++d) {
        if (weights[d] == 0 || !std::isfinite(row.error[d]) || !std::isfinite(row.damage[d])) continue;
        of_error += weights[d] * row.error[d], of_damage += weights[d] * row.damage[d], count += weights[d];
      }
      const bool known = count > 0 && (without == nullptr || row.method != *without);
      error.push_back(known ? of_error / count : NAN), damage.push_back(known ? of_damage / count : NAN);
    }
  }
};

struct Order {
  double spearman = 0, tasks = 0;
  double agreeing = 0, pairs = 0;
  double mean_spearman() const { return tasks == 0 ? NAN : spearman / tasks; }
  double agreement() const { return pairs == 0 ? NAN : agreeing / pairs; }

  void add(const Task& task, const Means& means) {
    std::vector<double> errors, damages;
    for (std::size_t i = 0; i < means.error.size(); ++i) {
      if (!std::isnan(means.error[i])) errors.push_back(means.error[i]), damages.push_back(means.damage[i]);
    }
    if (const double rho = eval::spearman(errors, damages); !std::isnan(rho)) spearman += rho, tasks += 1;
    for (const auto& [i, j] : task.pairs) {
      const double error = means.error[i] - means.error[j], damage = means.damage[i] - means.damage[j];
      if (std::isnan(error) || damage == 0) continue;
      pairs += 1;
      agreeing += error == 0 ? 0.5 : (error < 0) == (damage < 0);
    }
  }
};

Order order_of(const std::vector<Task>& tasks, const Weights& weights, const std::string* without = nullptr) {
  Order order;
  for (std::size_t t = 0; t < tasks.size(); ++t) order.add(tasks[t], Means(*tasks[t].group, weights[t], without));
  return order;
}

/// The figures of several orders that exist.
struct Figures {
  std::vector<double> spearman, agreement;
  void add(const Order& order) {
    if (order.tasks > 0) spearman.push_back(order.mean_spearman());
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
    const Means means(group, once.back(), nullptr);
    out.configurations +=
        static_cast<std::size_t>(std::ranges::count_if(means.error, [](double x) { return !std::isnan(x); }));
    for (const PredictionRow& row : group.rows) {
      assert(row.error.size() == documents_in(group) && row.damage.size() == documents_in(group));
      methods.insert(row.method);
    }
  }
  const std::vector<Task> tasks(groups.begin(), groups.end());
  const Order order = order_of(tasks, once);
  out.spearman = order.mean_spearman(), out.agreement = order.agreement();
  out.pairs = static_cast<std::size_t>(order.pairs);

  Figures without_one;
  for (const std::string& method : methods) without_one.add(order_of(tasks, once, &method));
  out.spearman_without_one = quantiles(without_one.spearman, 0, 1);
  out.agreement_without_one = quantiles(without_one.agreement, 0, 1);

  if (groups.empty() || fewest < 2) return out;
  Figures drawn;
  for (int r = 0; r < resamples; ++r)
    drawn.add(order_of(tasks, resample_documents(groups, static_cast<std::uint32_t>(r))));
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

}  // namespace kvbench::eval
