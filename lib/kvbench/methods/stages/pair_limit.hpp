// SPDX-License-Identifier: Apache-2.0
// The limit that every method has whose work can grow with the square of the context: above it the row says `infeasible`
// instead of running for hours.
#pragma once

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench {

/// Pairs of rows that a method may compare for one head, over all of its iterations.
struct PairLimit {
  double pairs = 0x1p37;  ///< about 10 minutes of one core at d = 128, where products of a cached tile bound it
};

/// The parameter `max_pairs`.
void fields(ParamVisitor& visitor, PairLimit& limit);

/// Throws Infeasible where `method` would compare more `pairs`; `remedy` names what else would bring it below the limit.
void check_pairs(const PairLimit& limit, std::string_view method, double pairs, std::string_view remedy);

}  // namespace kvbench
