// SPDX-License-Identifier: Apache-2.0
// quest: the cache is cut into pages, of which only the channel-wise smallest and largest keys are read to rank them; a query
// is answered by the pages whose bound on its logits is highest. Quest, arXiv 2406.10774, section 3.
//
// Pages are the tokens 16 p .. 16 p + 15, generated ones included. The bound of a page is sum_c max(q_c lo_c, q_c hi_c), at
// least <q, k> for each of its keys. Each query takes the max(3, B / 16) pages with the highest bound, ties to the lower page;
// where all tokens that it sees fit into B, all of them. The page that is being filled has the bounds of the tokens that the
// query may see: append() takes tokens up to the end of a page, and each of their queries gets bounds of its own for it.
//
// Parameters:
//   page       tokens, default 16 (the released scripts)
//   min_pages  default 3 (released evaluation code); a budget below min_pages * page is infeasible rather than exceeded
//   last_page  false (default, released evaluation code: the newest page competes with all others) | true (released CUDA path:
//              it is always taken, as one of the pages)
//   per        query_head (default: the released code repeats keys over the group before it selects) | kv_head
//   reduce     mean (default) | max | sum over the group's query heads, per=kv_head only (no source)
// Complexity: O(2 d n / page) a query and query head to rank, O(B d) to answer: each query reads rows of its own, so that a
// block of queries costs about as much as an exact pass at B = n/4, which reads each row once for all. Memory: nothing is
// saved. The whole cache stays on the fast tier, as in the paper, plus 2 d numbers a page; what falls is the bytes that a query
// reads. Deviations: the released code rounds a budget of all tokens down to whole pages and so may lose one of them. Its first
// two layers are dense: --dense-layers 2.
#pragma once

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct QuestParams {
  Index page = 16;
  Index min_pages = 3;
  bool last_page = false;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, QuestParams& params);

MethodInfo quest_method();

}  // namespace kvbench
