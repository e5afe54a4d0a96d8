// SPDX-License-Identifier: Apache-2.0
// quest: the cache is divided into pages. Only the channel-wise minima and maxima of their keys are read to rank them,
// and a query is answered by the pages with the highest bound on its logits. Quest, arXiv 2406.10774, section 3.
//
// Pages are the tokens 16 p .. 16 p + 15, generated ones included. The bound of a page is sum_c max(q_c lo_c, q_c
// hi_c), at least <q, k> for each of its keys. Each query takes the max(3, B / 16) pages with the highest bound, ties
// to the lower page; where all of its visible tokens fit into B, it takes all of them. The bounds of the last,
// incomplete page cover the tokens that are visible to the query: takes() stops at the end of a page, and
// each of their queries gets its own bounds for it.
//
// Parameters:
//   page       tokens per page, default 16 (the released scripts)
//   min_pages  default 3 (released evaluation code); a budget below min_pages * page is `infeasible` and not exceeded
//   last_page  false (default, released evaluation code: the newest page competes with all others) | true (released
//              CUDA path: it is always taken, as one of the pages)
//   per        query_head (default: the released code repeats keys over the query group before it selects) | kv_head
//   reduce     mean (default) | max | sum over the group's query heads, per=kv_head only (no source)
// Complexity: O(2 d n / page) per query and query head to rank, O(B d) to answer. Each query reads rows of its own, so
// that a block of queries costs about as much as an exact pass at B = n/4, which reads each row once for all queries.
// Memory: not reduced. The whole cache stays on the fast tier, as in the paper, with 2 d numbers per page in addition;
// the bytes read per query are reduced.
// Deviations: the released code rounds a budget of all tokens down to whole pages and so may lose a page. Its first two
// layers are dense: --dense-layers 2.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

struct QuestParams {
  Index page = 16;
  Index min_pages = 3;
  bool last_page = false;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, QuestParams& params);

MethodInfo quest_method();

}  // namespace kvbench::methods
