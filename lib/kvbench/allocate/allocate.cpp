// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/allocate.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <kvbench/core/error.hpp>

namespace kvbench::allocate {
namespace {

/// c^2 / (2 T), summed over pieces, mean over seeds and probes.
std::vector<double> damage_in(const DocumentDamage& document) {
  std::vector<double> damage(document.sums.size());
  for (std::size_t i = 0; i < damage.size(); ++i) {
    for (const double c : document.sums[i]) damage[i] += c * c;
    const std::size_t probes = document.sums[i].size() / document.pieces;  // of all seeds
    if (damage[i] > 0) damage[i] = replay::second_order(damage[i], document.scored * probes);
  }
  return damage;
}

/// Of an entry, summed over the layers that can have it.
double total_damage(const Choices& choices, std::size_t entry) {
  double total = 0;
  for (std::size_t l = 0; l < choices.layers; ++l) {
    if (choices.has(l, entry)) total += choices.damage[choices.at(l, entry)];
  }
  return total;
}

/// The geometric mean over the entries that all layers can have of the sum over layers, and over all entries if those
/// do no damage; 1 if none does any.
double typical_damage(const Choices& choices) {
  for (const bool everywhere : {true, false}) {
    double logs = 0, count = 0;
    for (std::size_t e = 0; e < choices.entries; ++e) {
      if (everywhere && !has_everywhere(choices, e)) continue;
      if (const double total = total_damage(choices, e); total > 0) logs += std::log(total), count += 1;
    }
    if (count > 0) return std::exp(logs / count);
  }
  return 1;
}

/// choices_of() of any of the documents: what single ones add to the mean is computed once.
class DocumentChoices {
 public:
  DocumentChoices(const Damages& damages, double shrinkage)
      : power_(1 - shrinkage), empty_{damages.places.size(), damages.menu.size(), {}, damages.cost} {
    empty_.damage.resize(empty_.cost.size());
    Choices own = empty_;
    for (const DocumentDamage& document : damages.documents) {
      own.damage = damage_in(document);
      const double typical = typical_damage(own);
      for (double& damage : own.damage) damage = std::pow(damage / typical, power_);
      powers_.push_back(own.damage);
    }
  }

  Choices of(std::span<const std::size_t> documents) const {
    Choices out = empty_;
    for (const std::size_t d : documents) {
      for (std::size_t i = 0; i < out.damage.size(); ++i) out.damage[i] += powers_[d][i];
    }
    for (double& damage : out.damage) damage = std::pow(damage / static_cast<double>(documents.size()), 1 / power_);
    return out;
  }

 private:
  double power_;
  Choices empty_;
  std::vector<std::vector<double>> powers_;  ///< [documents]
};

}  // namespace

Choices choices_of(const Damages& damages, std::span<const std::size_t> documents, double shrinkage) {
  return DocumentChoices(damages, shrinkage).of(documents);
}

replay::ProbeSums sums_of(const Damages& damages, std::size_t document, const Plan& plan) {
  const DocumentDamage& of = damages.documents[document];
  replay::ProbeSums out{.scored = of.scored, .layers = plan.size(), .seeds = 1, .probes = of.probes};
  const auto sums = [&](std::size_t l) -> const std::vector<double>& {
    return of.sums[l * damages.menu.size() + plan[l]];
  };
  const std::size_t of_seed = of.pieces * of.probes;
  for (std::size_t l = 0; l < plan.size(); ++l) out.seeds = std::max(out.seeds, sums(l).size() / of_seed);
  for (std::size_t l = 0; l < plan.size(); ++l) {
    for (std::size_t s = 0; s < out.seeds; ++s) {
      const std::span seed = std::span(sums(l)).subspan(s * of_seed % sums(l).size(), of_seed);
      for (std::size_t r = 0; r < of.probes; ++r) {
        double sum = 0;
        for (std::size_t p = 0; p < of.pieces; ++p) sum += seed[p * of.probes + r];
        out.sums.push_back(sum);
      }
    }
  }
  return out;
}

namespace {

using Documents = std::vector<std::size_t>;

/// The figure of a plan on a document.
double log_damage(const Damages& damages, std::size_t document, const Plan& plan) {
  constexpr double least = 1e-12;  // nats; less is rounding
  return std::log(std::max(least, damages.mean_of(sums_of(damages, document, plan))));
}

/// By document, log of the damage of plans[d] relative to to[d].
std::vector<double> log_ratios(const Damages& damages, std::span<const Plan> plans, std::span<const Plan> to) {
  std::vector<double> logs;
  for (std::size_t d = 0; d < plans.size(); ++d)
    logs.push_back(log_damage(damages, d, plans[d]) - log_damage(damages, d, to[d]));
  return logs;
}

Ratio ratio_of(std::span<const double> logs) {
  if (logs.size() < 2) return {};
  const Interval interval = student_interval(logs);
  return {std::exp(mean(logs)), {std::exp(interval.lo), std::exp(interval.hi)}};
}

Documents without(const Documents& documents, std::size_t left_out) {
  Documents rest = documents;
  std::erase(rest, left_out);
  return rest;
}

constexpr std::size_t shrinkages = document_shrinkages.size() * layer_shrinkages.size();

constexpr Shrinkage shrinkage_at(std::size_t i) {
  return {document_shrinkages[i / layer_shrinkages.size()], layer_shrinkages[i % layer_shrinkages.size()]};
}

/// The plans of sets of documents at a budget, each computed once.
class Planner {
 public:
  Planner(const Damages& damages, std::int64_t bytes, const Solver& solver)
      : damages_(damages), bytes_(bytes), solver_(solver) {
    for (const double shrinkage : document_shrinkages) choices_.emplace_back(damages, shrinkage);
  }

  /// The shrinkage by whose plans each document is hurt least by that of the others.
  Shrinkage shrinkage_of(const Documents& documents) {
    if (documents.size() == 1) return untested_shrinkage;
    std::vector<double> logs(shrinkages);
    for (const std::size_t d : documents) {
      const std::vector<Plan>& plans = plans_of(without(documents, d));
      for (std::size_t i = 0; i < shrinkages; ++i) logs[i] += log_damage(damages_, d, plans[i]);
    }
    return shrinkage_at(static_cast<std::size_t>(std::ranges::min_element(logs) - logs.begin()));
  }

  Plan plan_of(const Documents& documents, const Shrinkage& shrinkage) const {
    const auto of = std::ranges::find(document_shrinkages, shrinkage.documents) - document_shrinkages.begin();
    return *solver_(shrunk(choices_[static_cast<std::size_t>(of)].of(documents), shrinkage.layers), bytes_);
  }

 private:
  /// By shrinkage.
  const std::vector<Plan>& plans_of(const Documents& documents) {
    std::vector<Plan>& plans = plans_[documents];
    for (std::size_t i = plans.size(); i < shrinkages; ++i) plans.push_back(plan_of(documents, shrinkage_at(i)));
    return plans;
  }

  const Damages& damages_;
  std::int64_t bytes_;
  const Solver& solver_;
  std::vector<DocumentChoices> choices_;  ///< by document_shrinkages
  std::map<Documents, std::vector<Plan>> plans_;
};

/// What plans[d] predict on document d, of which each counts as often. Widened as that of the entry of which anchors
/// know least.
replay::PredictedKl prediction(const Damages& damages, const std::vector<Plan>& plans) {
  std::vector<replay::ProbeSums> sums;
  double spread = 0;
  for (std::size_t d = 0; d < plans.size(); ++d) {
    sums.push_back(sums_of(damages, d, plans[d]));
    for (const std::size_t e : plans[d])
      spread = std::max(spread, damages.anchors.empty() ? 0 : damages.anchors[e].spread);
  }
  return damages.of(sums, spread);
}

Spending spending(const Damages& damages, Plan plan) {
  const double fitted = prediction(damages, std::vector<Plan>(damages.documents.size(), plan)).mean;
  const std::int64_t cost = cost_of({damages.places.size(), damages.menu.size(), {}, damages.cost}, plan);
  return {std::move(plan), cost, fitted, {}, {}};
}

/// The least budget for which the solver has a plan; absent if it has none for any.
std::optional<std::int64_t> least_budget(const Choices& choices, const Solver& solver) {
  std::int64_t low = 0,
               high = std::accumulate(choices.cost.begin(), choices.cost.end(), std::int64_t{1},
                                      [](auto sum, auto cost) { return sum + std::max<decltype(cost)>(cost, 0); });
  if (!solver(choices, high)) return std::nullopt;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (solver(choices, middle) ? high : low) = middle;
  }
  return high;
}

/// Throws NothingFits if the solver has no plan for the budget.
void check_fits(const Damages& damages, const Choices& choices, const Budget& budget, const Solver& solver) {
  if (solver(choices, damages.budget_of(budget.share()))) return;
  const char* const as_predicted = damages.has_outside() ? ", as far as their damage can be predicted" : "";
  const std::optional<std::int64_t> least = least_budget(choices, solver);
  if (!least)
    throw NothingFits(
        "`menu`: no plan of its configurations is possible{}: some {} can have none of them; add one that it can have, "
        "such as exact",
        as_predicted, damages.place());
  const std::int64_t full = damages.budget_of(1);
  const std::int64_t thousandths = (*least * 100'000 + full - 1) / full;  // of a percent, rounded up: they fit
  throw NothingFits(
      "`menu`: no plan of its configurations fits in {}{}; the smallest holds {:g} %; choose a larger budget, or add "
      "a method that keeps fewer tokens or bits",
      budget.text(), as_predicted, static_cast<double>(thousandths) / 1000);
}

/// Absent if all layers can have no entry within the budget.
std::optional<Plan> equal_plan(const Choices& choices, std::int64_t bytes) {
  const auto entry = best_equal(choices, bytes);
  if (!entry) return std::nullopt;
  return Plan(choices.layers, *entry);
}

/// Of plans on held-out documents, whose ratio they give.
void compare_held_out(const Damages& damages, Allocation& out) {
  const std::vector<double> logs = log_ratios(damages, out.plan.without, out.equal->without);
  const Ratio ratio = ratio_of(logs);
  out.ratio = ratio.mean, out.interval = ratio.interval;
  out.needed = documents_needed(logs);
}

}  // namespace

Allocation allocate(const Damages& damages, const Budget& budget, const Solver& solver) {
  const std::int64_t bytes = damages.budget_of(budget.share());
  Documents all(damages.documents.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const DocumentChoices choices(damages, 0);
  check_fits(damages, choices.of(all), budget, solver);
  Planner planner(damages, bytes, solver);
  Allocation out{.budget = budget, .documents = all.size(), .shrinkage = planner.shrinkage_of(all)};
  out.plan = spending(damages, planner.plan_of(all, out.shrinkage));
  if (auto equal = equal_plan(choices.of(all), bytes)) out.equal = spending(damages, *std::move(equal));
  if (all.size() == 1) return out;
  for (const std::size_t d : all) {
    const Documents others = without(all, d);
    out.plan.without.push_back(planner.plan_of(others, planner.shrinkage_of(others)));
    if (out.equal) out.equal->without.push_back(*equal_plan(choices.of(others), bytes));
  }
  out.plan.held_out = prediction(damages, out.plan.without);
  if (!out.equal) return out;
  out.equal->held_out = prediction(damages, out.equal->without);
  compare_held_out(damages, out);
  return out;
}

Ratio compare(const Damages& damages, std::span<const Plan> plans, std::span<const Plan> to) {
  return ratio_of(log_ratios(damages, plans, to));
}

std::optional<std::size_t> documents_needed(std::span<const double> logs) {
  constexpr std::size_t most = 1000;
  const double spread = standard_error(logs) * std::sqrt(static_cast<double>(logs.size()));
  for (std::size_t count = 2; count <= most && mean(logs) < 0; ++count) {
    const auto n = static_cast<double>(count);
    if (mean(logs) + student_bound(0.95, n - 1) * spread / std::sqrt(n) < 0) return count;
  }
  return std::nullopt;
}

methods::PlannedBudget planned(const Damages& damages, const Allocation& allocation, Accept accept) {
  methods::PlannedBudget out{allocation.budget, {}};
  const Plan& plan = allocation.answer(accept).plan;
  for (std::size_t l = 0; l < plan.size(); ++l) {
    const replay::MethodChoice& method = damages.menu[plan[l]].method;
    out.lines[damages.places[l]] = {method.info, method.params,
                                    Budget::parse(fmt::format("{:.3f}%mem", 100 * damages.share(l, plan[l])))};
  }
  return out;
}

}  // namespace kvbench::allocate
