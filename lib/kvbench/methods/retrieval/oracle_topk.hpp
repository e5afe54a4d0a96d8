// SPDX-License-Identifier: Apache-2.0
// oracle-topk: for every query and query head, the B visible tokens with the largest exact logits. The selection reads
// the whole cache and therefore saves nothing; it is the upper reference of all methods that select tokens with weight
// 1.
//
// In prefill the candidates are the tokens of the context (the harness adds the exact tail); in decode also the decoded
// ones. Ties go to the lower token. A query with fewer than B visible tokens is answered by all of them. Parameters:
// none.
// Complexity: O(n) per query and query head in addition to the exact pass, whose logits it reads.
// Memory: the full cache on the slow tier, G B token ids on the fast one.
// Deviations: none (no paper defines it; Quest, arXiv 2406.10774, and ClusterKV, arXiv 2412.03213, measure their recall
// against this set).
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo oracle_topk_method();

}  // namespace kvbench::methods
