// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/prediction.hpp>

#include <algorithm>
#include <cassert>
#include <set>

#include <kvbench/eval/scores.hpp>
#include <kvbench/kernels/philox.hpp>

namespace kvbench::eval {
namespace {

// Streams of random numbers; 0 to 2: bootstrap and sign flips of lib/kvbench/core.
constexpr std::uint32_t prediction_draws = 3, half_draws = 4;
constexpr std::uint32_t halves = 200;

std::size_t documents_in(const PredictionGroup& group) {
  return group.rows.empty() ? 0 : group.rows.front().damage.size();
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

/// The weighted means of the rows, NaN where a row has none or is of the method that is left out.
struct Means {
  std::vector<double> error, damage;
  Means(const PredictionGroup& group, const std::vector<double>& weights, const std::string* without = nullptr) {
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

std::vector<double> every_document(const PredictionGroup& group) {
  return std::vector<double>(documents_in(group), 1.0);
}

/// Two rows whose order is compared.
struct Pair {
  std::size_t a, b;
  bool close;  ///< by the damage over all documents
};

/// A task with its pairs, found once for all resamples.
struct Task {
  const PredictionGroup* group;
  std::vector<Pair> pairs;

  explicit Task(const PredictionGroup& g) : group(&g) {
    const std::vector<double> damage = Means(g, every_document(g)).damage;
    for (std::size_t i = 0; i < g.rows.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (g.rows[i].budget != g.rows[j].budget || g.rows[i].method == g.rows[j].method) continue;
        const auto [less, more] = std::minmax(damage[i], damage[j]);
        pairs.push_back({i, j, more <= close_factor * less});
      }
    }
  }
};

/// Pairs counted, and those that the predictor orders as the damage does.
struct Count {
  double agreeing = 0, pairs = 0;
  double share() const { return pairs == 0 ? NAN : agreeing / pairs; }
};

struct Order {
  double spearman = 0, tasks = 0;
  Count all, close;
  double mean_spearman() const { return tasks == 0 ? NAN : spearman / tasks; }

  /// Predictions and damage by row of the task, NaN where there is none.
  void add(const Task& task, const std::vector<double>& error, const std::vector<double>& damage) {
    std::vector<double> errors, damages;
    for (std::size_t i = 0; i < error.size(); ++i) {
      if (!std::isnan(error[i]) && !std::isnan(damage[i])) errors.push_back(error[i]), damages.push_back(damage[i]);
    }
    if (const double rho = eval::spearman(errors, damages); !std::isnan(rho)) spearman += rho, tasks += 1;
    for (const auto& [i, j, is_close] : task.pairs) {
      const double by_error = error[i] - error[j], by_damage = damage[i] - damage[j];
      if (std::isnan(by_error) || std::isnan(by_damage) || by_damage == 0) continue;
      const double agrees = by_error == 0 ? 0.5 : (by_error < 0) == (by_damage < 0);
      all.pairs += 1, all.agreeing += agrees;
      if (is_close) close.pairs += 1, close.agreeing += agrees;
    }
  }
};

Order order_of(const std::vector<Task>& tasks, const Weights& weights, const std::string* without = nullptr) {
  Order order;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const Means means(*tasks[t].group, weights[t], without);
    order.add(tasks[t], means.error, means.damage);
  }
  return order;
}

Interval quantiles(std::vector<double> values, double lo, double hi) {
  std::erase_if(values, [](double x) { return std::isnan(x); });
  return values.empty() ? Interval{NAN, NAN} : Interval{quantile(values, lo), quantile(values, hi)};
}

std::size_t fewest_documents(std::span<const PredictionGroup> groups) {
  std::size_t fewest = groups.empty() ? 0 : SIZE_MAX;
  for (const PredictionGroup& group : groups) fewest = std::min(fewest, documents_in(group));
  return fewest;
}

/// Rank correlation and shares of several orders of the same tasks.
struct Drawn {
  std::vector<double> spearman, all, close;
  void add(const Order& order) {
    spearman.push_back(order.mean_spearman()), all.push_back(order.all.share()), close.push_back(order.close.share());
  }
};

PairOrder pair_order(const Count& count, std::vector<double> drawn) {
  return {count.share(), quantiles(drawn, 0.025, 0.975), static_cast<std::size_t>(count.pairs), std::move(drawn)};
}

/// The damage in place of the error, so that it needs no error to count.
std::vector<PredictionGroup> damage_alone(std::span<const PredictionGroup> groups) {
  std::vector<PredictionGroup> out(groups.begin(), groups.end());
  for (PredictionGroup& group : out) {
    for (PredictionRow& row : group.rows) row.error = row.damage;
  }
  return out;
}

Ceiling ceiling_of(const Drawn& drawn) {
  const auto mean_of = [](std::vector<double> values) {
    std::erase_if(values, [](double x) { return std::isnan(x); });
    return values.empty() ? NAN : mean(values);
  };
  return {mean_of(drawn.all), mean_of(drawn.close)};
}

/// A random half of the documents, rounded down: 1 for those in it.
std::vector<double> half_of(std::size_t documents, std::uint32_t draw, std::uint32_t group) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  for (std::size_t d = 0; d < documents; ++d)
    order.emplace_back(philox4x32({{draw, static_cast<std::uint32_t>(d), half_draws, group}}, {}).x[0], d);
  std::ranges::sort(order);
  std::vector<double> half(documents, 0.0);
  for (std::size_t i = 0; i < documents / 2; ++i) half[order[i].second] = 1;
  return half;
}

/// The damage of the rows of `from` at the places of the same configurations of `to`; NaN where it has none.
std::vector<double> damage_elsewhere(const PredictionGroup& from, const PredictionGroup& to) {
  const std::vector<double> damage = Means(from, every_document(from)).damage;
  std::vector<double> out;
  for (const PredictionRow& row : to.rows) {
    const auto same = std::ranges::find_if(
        from.rows, [&](const PredictionRow& r) { return r.method == row.method && r.budget == row.budget; });
    out.push_back(same == from.rows.end() ? NAN : damage[static_cast<std::size_t>(same - from.rows.begin())]);
  }
  return out;
}

}  // namespace

Prediction predict(std::span<const PredictionGroup> groups, int resamples) {
  Prediction out;
  Weights once;
  std::set<std::string> methods;
  for (const PredictionGroup& group : groups) {
    once.push_back(every_document(group));
    out.documents += documents_in(group);
    const Means means(group, once.back());
    out.configurations +=
        static_cast<std::size_t>(std::ranges::count_if(means.error, [](double x) { return !std::isnan(x); }));
    for (const PredictionRow& row : group.rows) {
      assert(row.error.size() == documents_in(group) && row.damage.size() == documents_in(group));
      methods.insert(row.method);
    }
  }
  const std::vector<Task> tasks(groups.begin(), groups.end());

  Drawn without_one;
  for (const std::string& method : methods) without_one.add(order_of(tasks, once, &method));
  out.spearman_without_one = quantiles(without_one.spearman, 0, 1);
  out.share_without_one = quantiles(without_one.all, 0, 1);

  Drawn drawn;
  if (fewest_documents(groups) >= 2) {
    for (int r = 0; r < resamples; ++r)
      drawn.add(order_of(tasks, resample_documents(groups, static_cast<std::uint32_t>(r))));
  }
  const Order order = order_of(tasks, once);
  out.spearman = order.mean_spearman(), out.spearman_interval = quantiles(drawn.spearman, 0.025, 0.975);
  out.all = pair_order(order.all, std::move(drawn.all));
  out.close = pair_order(order.close, std::move(drawn.close));
  return out;
}

ShareDifference difference(const PairOrder& a, const PairOrder& b) {
  if (a.pairs != b.pairs || a.pairs == 0) return {};
  std::vector<double> drawn;
  for (std::size_t r = 0; r < std::min(a.drawn.size(), b.drawn.size()); ++r) drawn.push_back(a.drawn[r] - b.drawn[r]);
  if (drawn.empty()) return {.value = a.share - b.share};
  const auto below = std::ranges::count_if(drawn, [](double d) { return d <= 0; }),
             above = std::ranges::count_if(drawn, [](double d) { return d >= 0; });
  const double p = 2 * static_cast<double>(1 + std::min(below, above)) / static_cast<double>(1 + drawn.size());
  return {a.share - b.share, quantiles(std::move(drawn), 0.025, 0.975), std::min(1.0, p)};
}

Ceiling half_against_half(std::span<const PredictionGroup> groups) {
  if (fewest_documents(groups) < 2) return {};
  const std::vector<PredictionGroup> damages = damage_alone(groups);
  const std::vector<Task> tasks(damages.begin(), damages.end());
  Drawn drawn;
  for (std::uint32_t draw = 0; draw < halves; ++draw) {
    Order order;
    for (std::uint32_t g = 0; g < tasks.size(); ++g) {
      const std::vector<double> half = half_of(documents_in(damages[g]), draw, g);
      std::vector<double> other;
      for (const double in_half : half) other.push_back(1 - in_half);
      order.add(tasks[g], Means(damages[g], half).damage, Means(damages[g], other).damage);
    }
    drawn.add(order);
  }
  return ceiling_of(drawn);
}

Ceiling group_against_group(std::span<const PredictionGroup> groups) {
  const std::vector<PredictionGroup> damages = damage_alone(groups);
  const std::vector<Task> tasks(damages.begin(), damages.end());
  Drawn drawn;
  for (const Task& to : tasks) {
    for (const PredictionGroup& from : damages) {
      if (&from == to.group || from.task != to.group->task) continue;
      Order order;
      order.add(to, damage_elsewhere(from, *to.group), Means(*to.group, every_document(*to.group)).damage);
      drawn.add(order);
    }
  }
  return ceiling_of(drawn);
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
