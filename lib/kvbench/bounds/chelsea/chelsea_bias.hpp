// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), Eq. 2: a merged entry of degree g, the mean kbar of its keys, answers with g e^{a <q, kbar>} in
// place of sum_i e^{a <q, k_i>}. By Jensen's inequality this never is more, for any query: merging under-estimates the mass of
// a cluster. What must hold of the entries of `chelsea`, to rounding:
//   (1) degrees sum to n, and sum of g kbar = sum of k (what Eq. 2's equality at q = 0 and its first order need)
//   (2) for every entry and query g e^{a <q, kbar>} <= sum over its tokens, with equality for an entry of one token
// The tokens of an entry need not be known: values merge as keys do, so on values v_i = e^{a <q, k_i>} the merged entry's value
// is the mean over its tokens. Queries come with their negatives, so that an error of first order has no place to hide.
// docs/theory/chelsea.bias.md.
#pragma once

#include <functional>
#include <vector>

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

/// Entries on values that are exponentials of logits: values[e][c] is the mean of e^{a <q_c, k_i> - shift_c} over the entry.
struct MassEntries {
  std::vector<double> degrees;              ///< [E]
  std::vector<std::vector<double>> keys;    ///< [E][d]
  std::vector<std::vector<double>> values;  ///< [E][columns]
};

/// Keys, and the queries whose exponentials the values are.
struct MassProblem {
  Index n = 0, d = 0;
  double scale = 1;
  std::span<const float> keys;               ///< [n, d]
  std::vector<std::vector<double>> queries;  ///< [columns][d]
  std::vector<double> shift;                 ///< [columns] largest logit
  std::vector<float> values;                 ///< [n, columns]
};
MassProblem mass_problem(const Subject& subject);

struct BiasCount {
  std::int64_t sums = 0, broken_sums = 0;        ///< (1), and the mass itself: sum of g vbar = Z
  std::int64_t entries = 0, broken_entries = 0;  ///< (2), entries times queries
  std::int64_t merged = 0;                       ///< entries of more than one token
  double worst_sum = 0;                          ///< largest relative error of a sum
  double log_ratio = 0;                          ///< mean over the queries themselves of ln(Z_hat / Z)
  double lowest = 0;                             ///< lowest of them
};
BiasCount count_bias(const MassProblem& problem, const MassEntries& entries);

/// What `chelsea` holds of a problem.
MassEntries chelsea_entries(const MassProblem& problem, const Subject& subject, Index budget, Backend& backend);

Claim chelsea_bias();

}  // namespace kvbench
