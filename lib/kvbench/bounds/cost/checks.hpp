// SPDX-License-Identifier: Apache-2.0
// The complexities that the papers state, one check per paper.
#pragma once

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

Check subgen_cost();
Check balancekv_cost();
Check clusterkv_cost();
Check chelsea_cost();

}  // namespace kvbench::bounds
