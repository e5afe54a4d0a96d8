// SPDX-License-Identifier: Apache-2.0
// Damages of documents as what plans are chosen from, and of plans.
#pragma once

#include <span>

#include <kvbench/allocate/damage.hpp>
#include <kvbench/allocate/solve.hpp>

namespace kvbench::allocate {

/// The damage D[l, c] = mean over probes and seeds of c^2 / (2 T), as the mean over these documents (indices). Each is
/// first divided by the geometric mean of its entries, so that documents weigh alike.
Choices choices_of(const Damages& damages, std::span<const std::size_t> documents);

/// What a plan adds to each probe of a document.
replay::ProbeSums sums_of(const Damages& damages, std::size_t document, const Plan& plan);

}  // namespace kvbench::allocate
