// SPDX-License-Identifier: Apache-2.0
// Negative control: all theorems fix the query before the random numbers are drawn. Here the query is chosen after the
// walk, along its signed sum w, and Theorem 3.4 of BalanceKV (arXiv 2502.07861) is expected to fail: |<w, u>| = |w|
// |u|, which grows like the square root of the dimension. That the same check finds no failure for fixed queries shows
// that it could. The rows are claims, so that they are no faults. docs/theory/negative.adaptive.md.
#pragma once

#include <kvbench/bounds/balancekv/checks.hpp>

namespace kvbench::bounds {

/// Adds the row that queries chosen after the signs exceed the tight bound more often than with probability delta.
void check_adaptive(CheckContext& context, const PlainVectors& vectors, Index seeds, const SignWalk& walk);

Check negative_adaptive();

}  // namespace kvbench::bounds
