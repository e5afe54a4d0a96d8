// SPDX-License-Identifier: Apache-2.0
// Methods that evict tokens, and wrappers of them: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

MethodInfo exact_method();
MethodInfo h2o_global_method();
MethodInfo snapkv_method();
MethodInfo snapkv_kvpress_method();
MethodInfo pyramidkv_method();
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
MethodInfo duo_method();
MethodInfo duo_kvpress_method();
MethodInfo subgen_kcenter_method();
MethodInfo random_method();

Wrapper adakv_wrapper();
Wrapper adakv_kvpress_wrapper();
Wrapper criticalkv_wrapper();

}  // namespace kvbench::methods
