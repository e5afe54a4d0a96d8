// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Lemma 1: at any step n, mu = sum over i <= n of |v_i|^2, and M is a list of s i.i.d.
// samples with
//   Pr[M(j) = (k_i, v_i)] = |v_i|^2 / mu.
//
// Reading: the text before the lemma samples by |k|^2; lemma, proof and listing by |v|^2: the latter. mu covers the
// newest token when a query is answered (line 6 comes before line 7). docs/theory/subgen.lemma1.md.
#pragma once

#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

/// The token in each slot after each of `times` tokens (increasing), [times][slots], for one seed.
using SlotHistory = std::function<std::vector<std::vector<TokenId>>(std::uint32_t seed, std::span<const Index> times)>;

/// Adds the row that sum of wN |v|^2 over the entries is mu of the first tokens. One sketch for each of `tokens`.
void check_mu(CheckContext& context, const SubgenValues& values, std::span<const Index> tokens,
              std::span<const SubgenSketch> sketches);
/// Adds the row that the entries count each token by the law: wN = count * mu / (s |v|^2).
void check_entry_counts(CheckContext& context, const SubgenValues& values, Index slots, const Sketcher& sketcher);
/// Adds the rows of the slots' law at each of `times`, of pairs of slots and of pairs of times.
void check_slots(CheckContext& context, const SubgenValues& values, std::span<const Index> times,
                 const SlotHistory& history);

Check subgen_lemma1();

}  // namespace kvbench::bounds
