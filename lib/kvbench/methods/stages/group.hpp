// SPDX-License-Identifier: Apache-2.0
// The scope of a selection where G query heads share one kv head: parameters of all methods with scores per query head.
#pragma once

#include <kvbench/kernels/backend.hpp>
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

}  // namespace kvbench::methods
