// SPDX-License-Identifier: Apache-2.0
// Methods that merge tokens: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo attention_matching_method();
MethodInfo bsm_method();
MethodInfo kmeans_method();
MethodInfo mesh_method();
MethodInfo wildcat_method();

}  // namespace kvbench::methods
