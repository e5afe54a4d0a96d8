// SPDX-License-Identifier: Apache-2.0
// Budgets by layer or kv head, and what they are worth on documents from which they were not computed.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <kvbench/allocate/damage.hpp>
#include <kvbench/allocate/solve.hpp>
#include <kvbench/methods/contract/layer_plan.hpp>

namespace kvbench::allocate {

/// How far damages are drawn towards each other before a plan is chosen, because single ones are noisy; 0: not at all.
struct Shrinkage {
  double documents = 0;  ///< those of a document towards the other documents, as choices_of() takes it; below 1
  double layers = 0;     ///< those of a layer towards the mean over layers, as shrunk() takes it; at most 1
};

/// Of which the one counts whose plans do the least damage on held-out documents, the first of equal ones.
inline constexpr std::array<double, 3> document_shrinkages = {0.75, 0.5, 0};
inline constexpr std::array<double, 5> layer_shrinkages = {1, 0.75, 0.5, 0.25, 0};
/// Of plans from one document, where none is left to hold out.
inline constexpr Shrinkage untested_shrinkage = {0, 0.5};

/// The damage D[l, c] = mean over probes and seeds of the sum over pieces of c^2 / (2 T), as a mean over documents
/// (indices). The products of errors in different pieces are left out: they are small in the mean, and most of the
/// noise of few probes (docs/allocate.md). Each damage is first divided by the geometric mean of the entries of its
/// document, so that documents weigh alike. The mean is (mean of D^p)^(1/p) with p = 1 - shrinkage: arithmetic without
/// shrinkage, and the closer to the geometric mean the closer this is to 1, so that one document that is unlike the
/// others does not decide alone.
Choices choices_of(const Damages& damages, std::span<const std::size_t> documents, double shrinkage = 0);

/// What a plan adds to each probe of a document.
replay::ProbeSums sums_of(const Damages& damages, std::size_t document, const Plan& plan);

/// A way to spend a budget, with its damage: predicted KL in nats per scored token (see Damages::figure()).
struct Spending {
  Plan plan;
  std::int64_t cost = 0;         ///< of all layers
  double fitted = NAN;           ///< mean over the documents from which it was computed: too small
  std::vector<Plan> without;     ///< as `plan`, from all documents but one; empty with one document
  replay::PredictedKl held_out;  ///< of these on the document that they lack, mean over documents; NaN with one
};

/// Which plans are answers: those of which less damage is expected than of equal budgets, or of these those alone whose
/// gain the documents confirm.
enum class Accept { expected, confirmed };

struct Allocation {
  Budget budget;
  std::size_t documents = 0;
  Spending plan;                  ///< a configuration per layer or head
  std::optional<Spending> equal;  ///< the best configuration for all layers; absent if all of them can have none
  Shrinkage shrinkage;            ///< of the plan
  double ratio = NAN;             ///< of the KL of plan and equal on held-out documents, geometric mean
  Interval interval{NAN, NAN};    ///< 95 % of `ratio`, Student's t over documents; NaN with one document
  /// Of so many the interval would lie below 1 if mean and spread of the logarithms stayed (documents_needed()).
  std::optional<std::size_t> needed;

  /// Whether documents from which it was not computed say that the plan does less damage.
  bool confirmed() const { return interval.hi < 1; }
  /// Whether the plan is the answer; otherwise equal budgets are.
  bool planned(Accept accept = Accept::expected) const {
    return !equal || (accept == Accept::confirmed ? confirmed() : ratio < 1);
  }
  const Spending& answer(Accept accept = Accept::expected) const { return planned(accept) ? plan : *equal; }
};

/// How a plan is found within a budget: solve(), or that of an engine.
using Solver = std::function<std::optional<Plan>(const Choices&, std::int64_t)>;

/// The plan for a budget. Each document is held out once: a plan and the best equal configuration of the others are
/// predicted on it. The shrinkage of a plan is the one whose plans do the least damage (geometric mean) where each of
/// its own documents is held out once, so that a held-out document has no say in the plan that is tested on it. Throws
/// NothingFits if no plan of the solver fits the budget.
Allocation allocate(const Damages& damages, const Budget& budget, const Solver& solver = solve);

/// The damage of plans relative to others, of which the document decides: geometric mean over documents, with its 95 %
/// interval (Student's t over the logarithms); NaN with one document.
struct Ratio {
  double mean = NAN;
  Interval interval{NAN, NAN};
};
Ratio compare(const Damages& damages, std::span<const Plan> plans, std::span<const Plan> to);

/// The least number M of documents, from 2 on, for which m + t s / sqrt(M) < 0, so that the interval would lie below 1:
/// m and s are mean and standard deviation of these logarithms of ratios, t is the bound of the 95 % interval with
/// M - 1 degrees of freedom. Absent where m >= 0, and where it takes more than 1000.
std::optional<std::size_t> documents_needed(std::span<const double> logs);

/// Of the answer, as a plan file has it: an entry in each place, at what it holds there.
methods::PlannedBudget planned(const Damages& damages, const Allocation& allocation, Accept accept = Accept::expected);

}  // namespace kvbench::allocate
