// SPDX-License-Identifier: Apache-2.0
// magicpig: keys are hashed by the signs of random projections, and a query is answered by the tokens that share at
// least two hash codes with it. Each has the inverse of its chance to be found as its weight, so that the sums are
// estimates of those over all tokens. MagicPIG, arXiv 2410.16179, sections 3 and 4; Infini-AI-Lab/MagicPIG
// models/attnserver.py and library/sparse_attention.
//
// L tables have a code of K bits for each token: whether <x, g> > 0 for Gaussian vectors g, x being the key minus the
// mean of the keys outside S first and W last tokens. A query has codes of its own. First, last and decoded tokens
// answer with weight 1. Of the others those whose codes agree with the query's in two tables or more answer with weight
// 1 / (u + 1e-4), u = 1 - (1 - p^K)^l - l p^K (1 - p^K)^(l - 1), p = 1 - theta / pi, theta the angle between the query
// and x, l the number of tables. Attention to centred keys is attention to the keys themselves.
// The released code has no budget: the data decide how many tokens are found. Here a query of a query head asks the
// first l <= L tables, as many as find no more tokens than the budget leaves, and weights follow from this l.
//
// Parameters:
//   bits    K, default 10 (released code)
//   tables  L, default 150 (released code)
//   sinks   S, tokens, default 4 (released code)
//   window  W, tokens, default 64 (released code), at most half of what the first tokens leave of the budget
// Complexity: O(n K L d) once, more than one exact pass over the queries of a replay: K L = 1500 projections of each
// key. O(K L d) per query and query head to hash it, O(tokens found in all tables + B (d + dv)) to answer. On a GPU the
// projections and the logits of a block cross to the host.
// Memory: the full cache in slow memory; in addition L token numbers for each token, 2^(K+1) bounds of buckets for each
// table, and the norms of the centred keys. Bytes read count, as library/lsh/lsh.cc reads, the two bounds of the asked
// bucket of each table and every token number in it: a bucket holds the tokens of one of 2^K codes. The table that
// finds too many is read to know that. Projections, one matrix in the released server, count in neither.
// Deviations: projections are drawn per kv head and seed. Its layers 0, 16, 32 and
// 48 are whole (--dense-layers keeps the first ones only). Decoded tokens are never hashed, as there.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct MagicpigParams {
  Index bits = 10;
  Index tables = 150;
  Index sinks = 4;
  Index window = 64;
};
void fields(ParamVisitor& visitor, MagicpigParams& params);

/// u: the chance that the codes of two vectors at this angle, in [0, pi], agree in two of `tables` tables or more.
double found_twice(double angle, Index bits, Index tables);

MethodInfo magicpig_method();

}  // namespace kvbench::methods
