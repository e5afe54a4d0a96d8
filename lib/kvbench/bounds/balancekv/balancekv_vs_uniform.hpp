// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), section 4.1 and Fig. 2: the error is much lower than that of uniform sampling, on every layer
// and at every rate. Protocol of the figure: prefill, the first and last 256 tokens exact, the last queries, blocks of 256,
// rates 1/2 .. 1/16 (here 1/2 and 1/8), exponents times 0.1, the layers that the paper numbers 1, 2, 5 (here 0, 1, 4). The test is on
// logarithms of the error of the released notebook, on the same queries and seeds, for the released algorithms and for those of
// the paper.
// docs/theory/balancekv.vs_uniform.md.
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

Claim balancekv_vs_uniform();

}  // namespace kvbench
