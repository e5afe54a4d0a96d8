// SPDX-License-Identifier: Apache-2.0
// Quantisers: a file each, with banner, parameters and row.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo int_method();
MethodInfo int8_method();
MethodInfo int4_method();
MethodInfo int2_method();
MethodInfo q8_0_method();
MethodInfo q6_0_method();
MethodInfo q5_1_method();
MethodInfo q5_0_method();
MethodInfo q4_1_method();
MethodInfo q4_0_method();
MethodInfo iq4_nl_method();
MethodInfo kivi4_method();
MethodInfo kivi2_method();
MethodInfo kvquant_nofisher_method();
MethodInfo fp8_method();
MethodInfo nvfp4_method();
MethodInfo turboquant_method();
MethodInfo turboquant_vllm_method();
MethodInfo qjl_method();

}  // namespace kvbench::methods
