// SPDX-License-Identifier: Apache-2.0
// oracle-topk: for every query and query head, the B visible tokens with the largest exact logits. It reads the whole cache to
// choose and so saves nothing; it is the ceiling of every method that selects tokens and weights them 1.
//
// In prefill the choice is among the context's tokens (the harness adds the exact tail); in decode also among the decoded ones.
// Ties go to the lower token. A query that sees fewer than B tokens is answered by all of them.
// Parameters: none. Complexity: O(n) a query and query head on top of the exact pass, whose logits it reads. Memory: the full
// cache on the slow tier, G B token numbers on the fast one. Deviations: none (no paper fixes it; Quest, arXiv 2406.10774, and
// ClusterKV, arXiv 2412.03213, measure their recall against this set).
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

MethodInfo oracle_topk_method();

}  // namespace kvbench
