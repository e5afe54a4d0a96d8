// SPDX-License-Identifier: Apache-2.0
// The scope of a selection where G query heads share one kv head: parameters of all methods with scores per query head.
// The limit of methods whose work can grow with the square of the context: a configuration above it is `infeasible` and
// does not run.
#pragma once

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench::methods {

struct GroupChoice {
  enum class Per { query_head, kv_head };
  Per per = Per::query_head;
  kernels::Reduction reduce = kernels::Reduction::mean;  ///< of the scores of the query group, per=kv_head only

  bool per_head() const { return per == Per::query_head; }
};

/// The parameters `per` and `reduce`.
void fields(ParamVisitor& visitor, GroupChoice& choice);

/// `scores` [G*m, n], row g*m + i, unchanged where each query head selects, otherwise reduced over the query group to
/// [m, n].
Buffer<const float> group_scores(const Buffer<const float>& scores, Index m, const GroupChoice& choice,
                                 Backend& backend);

/// Pairs of rows that a method may compare for one head, over all of its iterations.
struct PairLimit {
  double pairs = 0x1p37;  ///< 1 to 10 minutes on one core at d = 128, by instruction set
};

/// The parameter `max_pairs`.
void fields(ParamVisitor& visitor, PairLimit& limit);

/// Throws Infeasible where `method` would compare more `pairs`; `remedy` names another way below the limit.
void check_pairs(const PairLimit& limit, std::string_view method, double pairs, std::string_view remedy);

}  // namespace kvbench::methods
