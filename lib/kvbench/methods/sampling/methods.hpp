// SPDX-License-Identifier: Apache-2.0
// Methods that sample tokens: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo uniform_method();
MethodInfo uniform_repo_method();
MethodInfo balancekv_repo_method();
MethodInfo kh_compress_method();

}  // namespace kvbench::methods
