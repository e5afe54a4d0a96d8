// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Lemma 2: at any step the keys are partitioned into C_1 .. C_m, and for each i
//   (1) x_i in C_i   (2) n_i = |C_i|   (3) |x_i - k| <= delta for k in C_i   (4) |x_i - x_j| > delta for j != i
//   (5) S_i is t i.i.d. uniform samples of C_i.
// (1) to (4) are deterministic and checked in fp64; a distance may miss delta by the rounding of its fp32 sum. n_i
//     shows in the
// entries: the weights wD = n_i/t of a cluster's t samples sum to n_i. docs/theory/subgen.lemma2.md.
#pragma once

#include <kvbench/bounds/subgen/sketch.hpp>

namespace kvbench::bounds {

/// Adds the rows (1) to (4) and line 12 (the nearest representative is the one joined) for the clusters and entries
/// that the first keys of the subject led to.
void check_clusters(CheckContext& context, const SubgenSetup& setup, const SubgenSketch& sketch);
/// Adds the rows of (5).
void check_samples(CheckContext& context, const SubgenSetup& setup, const Sketcher& sketcher);

Check subgen_lemma2();

}  // namespace kvbench::bounds
