// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/allocate.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <kvbench/core/error.hpp>

namespace kvbench::allocate {
namespace {

/// c^2 / (2 T), mean over seeds and probes.
std::vector<double> damage_in(const DocumentDamage& document) {
  std::vector<double> damage(document.sums.size());
  for (std::size_t i = 0; i < damage.size(); ++i) {
    for (const double c : document.sums[i]) damage[i] += c * c;
    if (damage[i] > 0) damage[i] /= static_cast<double>(2 * document.scored * document.sums[i].size());
  }
  return damage;
}

/// The geometric mean over the entries that all layers can have of the sum over layers; 1 where none does damage.
double typical_damage(const Choices& choices) {
  double logs = 0, count = 0;
  for (std::size_t e = 0; e < choices.entries; ++e) {
    const double total = has_everywhere(choices, e) ? damage_of(choices, Plan(choices.layers, e)) : 0;
    if (total > 0) logs += std::log(total), count += 1;
  }
  return count > 0 ? std::exp(logs / count) : 1;
}

}  // namespace

Choices choices_of(const Damages& damages, std::span<const std::size_t> documents) {
  Choices out{damages.places.size(), damages.menu.size(), {}, damages.cost};
  out.damage.resize(out.cost.size());
  for (const std::size_t d : documents) {
    Choices own = out;
    own.damage = damage_in(damages.documents[d]);
    const double typical = typical_damage(own) * static_cast<double>(documents.size());
    for (std::size_t i = 0; i < own.damage.size(); ++i) out.damage[i] += own.damage[i] / typical;
  }
  return out;
}

replay::ProbeSums sums_of(const Damages& damages, std::size_t document, const Plan& plan) {
  const DocumentDamage& of = damages.documents[document];
  replay::ProbeSums out{.scored = of.scored, .layers = plan.size(), .seeds = 1, .probes = of.probes};
  const auto sums = [&](std::size_t l) -> const std::vector<double>& {
    return of.sums[l * damages.menu.size() + plan[l]];
  };
  for (std::size_t l = 0; l < plan.size(); ++l) out.seeds = std::max(out.seeds, sums(l).size() / of.probes);
  for (std::size_t l = 0; l < plan.size(); ++l) {
    for (std::size_t i = 0; i < out.seeds * of.probes; ++i) out.sums.push_back(sums(l)[i % sums(l).size()]);
  }
  return out;
}

namespace {

constexpr double shrinkages[] = {1, 0.75, 0.5, 0.25, 0};

std::vector<std::size_t> all_but(std::size_t count, std::size_t left_out) {
  std::vector<std::size_t> rest;
  for (std::size_t d = 0; d < count; ++d) {
    if (d != left_out) rest.push_back(d);
  }
  return rest;
}

/// What the plans of documents predict: plans[d] on document d, of which each counts as often.
class HeldOut {
 public:
  HeldOut(const Damages& damages, const std::vector<Plan>& plans) : damages_(damages) {
    for (std::size_t d = 0; d < plans.size(); ++d) sums_.push_back(sums_of(damages, d, plans[d]));
  }
  replay::PredictedKl mean() const { return damages_.of(sums_); }
  /// By document.
  std::vector<double> logs() const {
    constexpr double least = 1e-12;  // nats; less is rounding
    std::vector<double> out;
    for (const replay::ProbeSums& sums : sums_) out.push_back(std::log(std::max(least, damages_.of({&sums, 1}).mean)));
    return out;
  }

 private:
  const Damages& damages_;
  std::vector<replay::ProbeSums> sums_;
};

/// The plans of all documents but one, for each of them; `of` makes a plan of choices.
template <class F>
std::vector<Plan> without_each(const std::vector<Choices>& folds, F of) {
  std::vector<Plan> plans;
  for (const Choices& fold : folds) plans.push_back(of(fold));
  return plans;
}

Spending spending(const Damages& damages, const Choices& choices, Plan plan) {
  const HeldOut fitted(damages, std::vector<Plan>(damages.documents.size(), plan));
  const std::int64_t cost = cost_of(choices, plan);
  return {std::move(plan), cost, fitted.mean().mean, {}};
}

}  // namespace

Allocation allocate(const Damages& damages, const Budget& budget) {
  const std::size_t documents = damages.documents.size();
  const std::int64_t bytes = damages.budget_of(budget.share());
  std::vector<std::size_t> everything(documents);
  std::iota(everything.begin(), everything.end(), std::size_t{0});
  const Choices all = choices_of(damages, everything);
  const auto equal_of = [&](const Choices& choices) {
    const auto entry = best_equal(choices, bytes);
    if (!entry) {
      throw Error(
          "`menu`: none of its configurations fits in {} in all layers; add h2o or another method that keeps "
          "fewer tokens, or choose a larger budget",
          budget.text());
    }
    return Plan(choices.layers, *entry);
  };
  Allocation out{.budget = budget, .documents = documents, .equal = spending(damages, all, equal_of(all))};
  if (documents == 1) {
    out.plan = spending(damages, all, *solve(all, bytes));
    return out;
  }
  std::vector<Choices> folds;
  for (std::size_t d = 0; d < documents; ++d) folds.push_back(choices_of(damages, all_but(documents, d)));
  const HeldOut equal(damages, without_each(folds, equal_of));
  std::vector<double> best;
  for (const double share : shrinkages) {
    const auto plan_of = [&](const Choices& choices) { return *solve(shrunk(choices, share), bytes); };
    std::vector<Plan> plans = without_each(folds, plan_of);
    const HeldOut held_out(damages, plans);
    std::vector<double> logs = held_out.logs();
    if (!best.empty() && mean(logs) >= mean(best)) continue;
    best = std::move(logs);
    out.shrinkage = share;
    out.plan = spending(damages, all, plan_of(all));
    out.plan.held_out = held_out.mean();
    out.without = std::move(plans);
  }
  out.equal.held_out = equal.mean();
  const std::vector<double> reference = equal.logs();
  for (std::size_t d = 0; d < documents; ++d) best[d] -= reference[d];
  const Interval interval = student_interval(best);
  out.ratio = std::exp(mean(best));
  out.interval = {std::exp(interval.lo), std::exp(interval.hi)};
  return out;
}

methods::PlannedBudget planned(const Damages& damages, const Allocation& allocation) {
  methods::PlannedBudget out{allocation.budget, {}};
  const Plan& plan = allocation.answer().plan;
  for (std::size_t l = 0; l < plan.size(); ++l) {
    const replay::MethodChoice& method = damages.menu[plan[l]].method;
    out.lines[damages.places[l]] = {method.info, method.params,
                                    Budget::parse(fmt::format("{:.3f}%mem", 100 * damages.share(l, plan[l])))};
  }
  return out;
}

}  // namespace kvbench::allocate
