// SPDX-License-Identifier: Apache-2.0
// oracle-error: B weighted tokens for a whole block of evaluated queries, chosen and weighted with these queries at
// hand, so that the error of their answers is small: how far could any weighted subset of B tokens go?
//
// Greedy forward selection adds the token that lowers the squared relative error of the block most, and weights of
// the chosen tokens are fitted again (stages/token_weights.hpp states the objective and the tolerances). All queries
// and query heads of the block share the set and its weights. A block is what the harness evaluates at once: as many
// queries as 40 MB of logits allow, all of them in most traces. It is a ceiling with hindsight, not a bound: greedy
// selection need not find the best set, and with weights of its own for each query, dv + 1 tokens answer without error.
// Parameters: none. In prefill the candidates are the tokens of the context, in decode also the decoded ones so far,
// those of the block included. A budget of all candidates keeps them with weight 1.
// Complexity: O(R n B + n B^2) per block of R query rows, on the host in fp64. Infeasible above 2^24 pairs of a
// candidate with a query row or a kept token.
// Memory: B tokens and B weights.
// Deviations: none (no paper defines it).
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo oracle_error_method();

}  // namespace kvbench::methods
