// SPDX-License-Identifier: Apache-2.0
// Who selects where G query heads share one kv head: a stage that every method with scores by query head offers.
#pragma once

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench {

struct GroupChoice {
  enum class Per { query_head, kv_head };
  Per per = Per::query_head;
  kernels::Reduction reduce = kernels::Reduction::mean;  ///< of the group's scores to one, per=kv_head only

  bool per_head() const { return per == Per::query_head; }
};

/// The parameters `per` and `reduce`.
void fields(ParamVisitor& visitor, GroupChoice& choice);

/// Scores [G*m, n], row g*m + i, as they are where each query head selects, else reduced over the group to [m, n].
Buffer<const float> group_scores(const Buffer<const float>& scores, Index m, const GroupChoice& choice, Backend& backend);

}  // namespace kvbench
