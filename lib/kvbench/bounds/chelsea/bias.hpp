// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), Eq. 2: a merged entry of degree g with the mean key kbar contributes g e^{a <q, kbar>}
// instead of sum_i e^{a <q, k_i>}. By Jensen's inequality this is not larger, for any query: merging underestimates the
// mass of a cluster. The entries of `chelsea` must satisfy, up to rounding:
//   (1) degrees sum to n, and sum of g kbar = sum of k (equality in Eq. 2 at q = 0, and to first order)
//   (2) for every entry and query g e^{a <q, kbar>} <= sum over its tokens, with equality for an entry of one token
// The check need not know the tokens of an entry: values are merged as keys are, so with the values v_i = e^{a <q,
// k_i>} the value of a merged entry is the mean over its tokens. Every query is used with its negative, so that errors
// of first order show. docs/theory/chelsea.bias.md.
#pragma once

#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::bounds {

/// Entries whose values are exponentials of logits: values[e][c] is the mean of e^{a <q_c, k_i> - shift_c} over the
/// entry.
struct MassEntries {
  std::vector<double> degrees;              ///< [E]
  std::vector<std::vector<double>> keys;    ///< [E][d]
  std::vector<std::vector<double>> values;  ///< [E][columns]
};

/// Keys, queries, and values that are the exponentials of their logits.
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
  std::int64_t sums = 0, broken_sums = 0;        ///< the equations (1), and that of the mass: sum of g vbar = Z
  std::int64_t entries = 0, broken_entries = 0;  ///< the inequalities (2): one per entry and query
  std::int64_t merged = 0;                       ///< entries of more than one token
  double worst_sum = 0;                          ///< largest relative error of a sum
  double log_ratio = 0;                          ///< mean of ln(Z_hat / Z) over the queries without their negatives
  double lowest = 0;                             ///< smallest of these
};
BiasCount count_bias(const MassProblem& problem, const MassEntries& entries);

/// The entries that the method keeps for these keys and values.
MassEntries mass_entries(const MassProblem& problem, const Subject& subject, Index budget,
                         const MethodUnderTest& method, Backend& backend);

void check_chelsea_bias(CheckContext& context, const MethodUnderTest& method);

Check chelsea_bias();

}  // namespace kvbench::bounds
