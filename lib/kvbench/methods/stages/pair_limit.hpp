// SPDX-License-Identifier: Apache-2.0
// The limit of methods whose work can grow with the square of the context: a configuration above it is `infeasible` and
// does not run.
#pragma once

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

/// Pairs of rows that a method may compare for one head, over all of its iterations.
struct PairLimit {
  double pairs = 0x1p37;  ///< 1 to 10 minutes on one core at d = 128, by instruction set
};

/// The parameter `max_pairs`.
void fields(ParamVisitor& visitor, PairLimit& limit);

/// Throws Infeasible where `method` would compare more `pairs`; `remedy` names another way below the limit.
void check_pairs(const PairLimit& limit, std::string_view method, double pairs, std::string_view remedy);

}  // namespace kvbench::methods
