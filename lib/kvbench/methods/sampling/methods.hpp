// SPDX-License-Identifier: Apache-2.0
// Methods that sample tokens: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo kh_compress_method();
MethodInfo uniform_method();

}  // namespace kvbench::methods
