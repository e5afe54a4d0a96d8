// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Algorithm 1, lines 2 to 9: values are sorted into buckets of norms that double, one
// MergeAndReduce each, and buckets with 2^i <= eps / (2 n) e^{-a r^2} v_max are erased.
//   balancekv.buckets       the method holds the buckets that follow from the norms; values of equal norm need one
//                           bucket
//   balancekv.bucket_count  log2(n) buckets suffice (the comment of line 2)
// docs/theory/balancekv.buckets.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::bounds {

/// The number of buckets 2^{i-1} < |v| <= 2^i, not erased, after the first n tokens: line 4 with its inequality
/// corrected, line 9 with 2 n instead of 2^n, as the proof of Theorem 3.1 uses it. r is the largest norm of the n keys.
/// -1 where a norm is as near to a power of two as the rounding of fp32.
Index buckets_needed(const Subject& subject, Index n, double eps);

/// The number of buckets that the method holds: its note on value-norm buckets; -1 where there is none.
Index buckets_held(const Subject& subject, Index n, const MethodUnderTest& method, Backend& backend);

void check_buckets(CheckContext& context, const MethodUnderTest& method);

Check balancekv_buckets();
Check balancekv_bucket_count();

}  // namespace kvbench::bounds
