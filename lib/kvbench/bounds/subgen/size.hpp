// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), the size of D in Theorem 1 and Corollary 1.
//
// m' clusters are at most m(delta), the least m for which the keys are (m, delta)-clusterable (Definition 1), by the
// pigeonhole principle. m(delta) is NP-hard; from above, clusters of radius delta/2 have diameter delta, so
//   m'(delta) <= m(delta) <= m'(delta/2).
// Corollary 1 requires that delta r = o(log n) and that m grows sublinearly. docs/theory/subgen.size.md,
// subgen.corollary1.md.
#pragma once

#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

/// m' after each token, from labels that are numbered as clusters open.
std::vector<double> cluster_counts(std::span<const std::int32_t> labels);

/// Slope of log m'(n) over log n between n/16 and n, at `points` prefixes evenly spaced in log n.
double growth_exponent(std::span<const double> counts, int points = 16);

/// The exponent of a stream as a whole and of its disjoint quarters, each from its own first token on; the interval is
/// Student's over the quarters, 95 %.
struct Growth {
  double exponent = 0;
  Interval interval;
};
Growth cluster_growth(const Subject& subject, float delta, Backend& backend);

/// Adds the row m'(delta) <= m'(delta/2), with both as bounds of m(delta).
void check_sizes_nest(CheckContext& context, double delta, Index at_delta, Index at_half);

/// Adds the row of Corollary 1: with t ~ ln n, the numbers that the method holds grow along the stream no faster than
/// m' t. `footprint`: of the method at a setup after some tokens.
void check_memory_growth(CheckContext& context, const SubgenSetup& setup, const Growth& growth,
                         const std::function<methods::Footprint(const SubgenSetup&, Index)>& footprint);

Check subgen_size();
Check subgen_corollary1();
Check subgen_quantities();

}  // namespace kvbench::bounds
