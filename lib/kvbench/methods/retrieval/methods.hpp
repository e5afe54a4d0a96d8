// SPDX-License-Identifier: Apache-2.0
// Methods that choose tokens for each query: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo clusterkv_method();
MethodInfo clusterkv_repo_method();
MethodInfo oracle_error_method();
MethodInfo oracle_topk_method();
MethodInfo retroinfer_method();
MethodInfo twilight_method();

}  // namespace kvbench::methods
