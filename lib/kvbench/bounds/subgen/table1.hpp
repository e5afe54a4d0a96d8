// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Table 1 and section 3.2: with the same cache, k-center with a window answers better than
// heavy hitters (H2O) and than sinks (StreamingLLM), at 65, 58 and 50 % of the cache. Reading: the relative error of
// the output is smaller, at the same number of tokens (the paper's r + k) and at the same memory, metadata included.
// docs/theory/subgen.table1.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

Check subgen_table1();

}  // namespace kvbench::bounds
