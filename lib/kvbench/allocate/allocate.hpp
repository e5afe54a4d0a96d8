// SPDX-License-Identifier: Apache-2.0
// Budgets by layer or kv head, and what they are worth on documents from which they were not computed.
// Damages of documents as what plans are chosen from, and of plans.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include <kvbench/allocate/damage.hpp>
#include <kvbench/allocate/solve.hpp>
#include <kvbench/methods/contract/layer_plan.hpp>

namespace kvbench::allocate {

/// The damage D[l, c] = mean over probes and seeds of c^2 / (2 T), as the mean over these documents (indices). Each is
/// first divided by the geometric mean of its entries, so that documents weigh alike.
Choices choices_of(const Damages& damages, std::span<const std::size_t> documents);

/// What a plan adds to each probe of a document.
replay::ProbeSums sums_of(const Damages& damages, std::size_t document, const Plan& plan);

/// A way to spend a budget, with its damage: predicted KL in nats per scored token (see Damages::figure()).
struct Spending {
  Plan plan;
  std::int64_t cost = 0;         ///< of all layers
  double fitted = NAN;           ///< mean over the documents from which it was computed: too small
  replay::PredictedKl held_out;  ///< of plans from all other documents, mean over documents; NaN with one document
};

struct Allocation {
  Budget budget;
  std::size_t documents = 0;
  Spending plan;                ///< a configuration per layer or head
  Spending equal;               ///< the best configuration for all layers
  std::vector<Plan> without;    ///< as `plan`, from all documents but one; empty with one document
  double shrinkage = 0;         ///< of the plan towards equal layers, as shrunk() takes it
  double ratio = NAN;           ///< of the KL of plan and equal on held-out documents, geometric mean
  Interval interval{NAN, NAN};  ///< 95 % of `ratio`, Student's t over documents; NaN with one document

  /// Whether documents from which it was not computed say that the plan does less damage.
  bool confirmed() const { return interval.hi < 1; }
  const Spending& answer() const { return confirmed() ? plan : equal; }
};

/// The plan for a budget. Each document is held out once: a plan and the best equal configuration of the others are
/// predicted on it. Of the shrinkages 0, 1/4, 1/2, 3/4 and 1 the one counts whose plans do the least damage there
/// (geometric mean over documents), the largest of equal ones. Throws Error where no configuration fits the budget in
/// all layers.
Allocation allocate(const Damages& damages, const Budget& budget);

/// Of the answer, as a plan file has it: an entry in each place, at what it holds there.
methods::PlannedBudget planned(const Damages& damages, const Allocation& allocation);

}  // namespace kvbench::allocate
