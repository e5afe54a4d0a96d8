// SPDX-License-Identifier: Apache-2.0
// Tables of Chelsea (arXiv 2506.11418), as errors of the output of attention at 20 % of the cache. The paper reports
// scores of tasks and costs, so that only the order of the methods, or a small difference, can be compared.
// docs/theory/chelsea.tables.md.
//   chelsea.table1  matching inside chunks loses little against mesh, K-Means and bipartite matching without chunks
//   chelsea.table2  Chelsea has the smaller error than StreamingLLM, SnapKV and CaM (also Fig. 4 and Tables 6 to 8)
//   chelsea.table4  the size of a chunk matters little; chunks of 16 are the worst
#pragma once

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

Check chelsea_table1();
Check chelsea_table2();
Check chelsea_table4();

}  // namespace kvbench::bounds
