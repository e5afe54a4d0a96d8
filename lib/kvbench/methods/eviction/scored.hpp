// SPDX-License-Identifier: Apache-2.0
// Score-only methods, one expression each: the file of a method has its banner, its expression and its row.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo knorm_method();
MethodInfo keydiff_method();
MethodInfo curdkv_method();
MethodInfo lagkv_method();
MethodInfo lagkv_kvpress_method();
MethodInfo tova_method();
MethodInfo tova_kvpress_method();
MethodInfo expected_attention_method();
MethodInfo triattention_method();
MethodInfo compactor_method();
MethodInfo r_kv_method();

}  // namespace kvbench::methods
