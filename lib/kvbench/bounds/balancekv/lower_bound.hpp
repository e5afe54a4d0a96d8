// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861v3): a lower bound on the memory of any approximation, by reduction from INDEX. A stream
// encodes one bit per token: nearly orthogonal keys, values +1 or -1. A query along key i returns bit i. Whoever
// answers for a random i, unknown when the cache was made, with probability 2/3 needs memory for a constant fraction of
// the bits. A cache of B of n tokens guesses the others, of which half are right.
//
// Every method of the registry that keeps a subset, samples or means runs at B = n/16 on such a stream. A unit is the
// query of one token; it fails where the answer is off by more than 1/2. The claim is that more than a third of the
// units fail. docs/theory/balancekv.lower_bound.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

/// n tokens with keys of random signs in d dimensions, bits as values, and the queries of the tokens 0, n/m, 2 n/m, ...
/// At the queries nearly all attention is on one token.
Subject index_instance(Index n, Index queries, Backend& backend);

/// Adds the row of one method: the errors of its answers to the queries, against 1/2.
void check_index_errors(CheckContext& context, const std::string& method, Index budget, std::span<const double> errors);

Check balancekv_lower_bound();

}  // namespace kvbench::bounds
