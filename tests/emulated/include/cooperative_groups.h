// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_side.h"

namespace cooperative_groups {

struct grid_group {
  void sync(emulated::Where where = emulated::Where::current()) const { emulated::sync_grid(where); }
};
inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
