// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), the second half of Theorem 1's proof (Eq. 6): z = (1/s) sum over slots of mu/|v|^2
// exp(<q,k>) v is within eta |a|_2 |V|_op of V^T a, a = exp(Kq).
//
// The paper quotes approximate matrix products with s of order d / eta^2. By Lemma 1 (docs/theory/subgen.amm.md):
//   E z = V^T a  and  E |z - V^T a|^2 = (|a|^2 |V|_F^2 - |V^T a|^2) / s exactly;
//   Markov:     eta = sqrt(srank (1 - |V^T a|^2 / (|a|^2 |V|_F^2)) / (s p)), srank = |V|_F^2 / |V|_op^2 <= d
//   Bernstein:  with the same variance and the largest term, (mu max a_i/|v_i| + |V^T a|) / s: short values drive the
//               tail.
#pragma once

#include <functional>

#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

/// Moments of z for numbers x in place of the exponentials.
struct ProductLaw {
  std::vector<double> mean;  ///< V^T x
  double mean2 = 0;          ///< |V^T x|^2
  double variance = 0;       ///< E |z - V^T x|^2
  double largest = 0;        ///< of the centred terms of z
  double kurtosis = 0;       ///< E |Y|^4 / (E |Y|^2)^2 of one centred term Y
  double along = 0;          ///< E <z - V^T x, u>^2, u the direction of V^T x
};
ProductLaw product_law(const Subject& subject, const SubgenValues& values, std::span<const double> x, Index s);

/// eta of Markov and of Bernstein at failure probability p, in units of |a| |V|_op.
struct ProductBounds {
  double markov_literal, markov_tight, bernstein;
};
ProductBounds product_bounds(const ProductLaw& law, const SubgenValues& values, const SubgenQuery& query, Index s,
                             Index d, double p);

void check_product(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries, Index s,
                   const Sketcher& sketcher);

/// Adds the row of the literal bound at s = 4 d / (p x^2), half of the trivial bound x of the best query, or one row
/// with s*; and the slope of the error of z over s.
void check_product_sizes(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries,
                         const std::function<Sketcher(Index s)>& sketcher_of);

Check subgen_amm();

}  // namespace kvbench::bounds
