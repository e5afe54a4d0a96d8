// SPDX-License-Identifier: Apache-2.0
// int, int8, int4, int2: keys and values rounded to integers, the plain baseline of all quantisers.
//
// Each group of consecutive channels of a token stores its minimum m and its step s = (max - m) / (2^bits - 1), both
// rounded to f16. The code of x is round((x - m) / s), ties to even, clamped to [0, 2^bits - 1], and is decoded to
// m + code s. A group of equal numbers has s = 0 and is decoded to m.
// With group=0, a token of a head is one group, as in vLLM's int4_per_token_head (vllm-project/vllm #38854).
//
// Parameters: group. `int` chooses the bits, of 8, 6, 5, 4, 3 and 2, by the budget; bits sets them, and value_bits sets
// those of values apart.
// Complexity: O(n (d + dv)) to encode and to decode. Memory: (bits + 32 / group) / 16 of the cache in 16 bits.
// Worst-case error of a number: (max - min) / (2 (2^bits - 1)), and the rounding of m and s to f16.
// Deviations: none; there is no paper.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo int_method();
MethodInfo int8_method();
MethodInfo int4_method();
MethodInfo int2_method();

}  // namespace kvbench::methods
