// SPDX-License-Identifier: Apache-2.0
// Methods that evict tokens, and wrappers of them: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

MethodInfo exact_method();
MethodInfo random_method();
Wrapper adakv_wrapper();
Wrapper adakv_kvpress_wrapper();
Wrapper criticalkv_wrapper();

}  // namespace kvbench::methods
