// SPDX-License-Identifier: Apache-2.0
// q8_0, q5_1, q5_0, q4_1, q4_0: the formats of llama.cpp's quantised caches.
// ggml-org/ggml src/ggml-quants.c: quantize_row_q8_0_ref, quantize_row_q5_1_ref, quantize_row_q5_0_ref,
// quantize_row_q4_1_ref, quantize_row_q4_0_ref; src/ggml-cpu/arch/x86/quants.c: quantize_row_q8_0.
//
// A block is 32 consecutive channels of a token. Codes follow from scales in fp32, and are decoded with the scales as
// they are stored, in f16.
//   q8_0  s = max |x| / 127; code = round(x 127 / max |x|); decoded code s. 34 bytes.
//   q4_0  s = x / -8 of the x with the largest |x|; code = min(15, trunc(x / s + 8.5)); decoded (code - 8) s. 18 bytes.
//   q5_0  s = x / -16 of this x; code = min(31, trunc(x / s + 16.5)); decoded (code - 16) s. 22 bytes.
//   q4_1  m = min, s = (max - min) / 15; code = min(15, trunc((x - m) / s + 0.5)); decoded code s + m. 20 bytes.
//   q5_1  the same with 31. 24 bytes.
// x / s is computed as x times the fp32 number 1 / s, as ggml does.
//
// Parameters: hadamard rotates blocks of channels before they are rounded (llama.cpp #21038): of keys the largest
// power of two from 64 on that divides d, of values 64. round (q8_0): ties of codes go to the even one, as llama.cpp
// rounds on x86, or away from zero, as its reference function does. values: a format of their own, as llama.cpp's
// --cache-type-v is; there is none for 16 bits.
// Complexity: O(n (d + dv)); with hadamard O(n (d + dv) log d).
// Worst-case error of a number: s / 2 in q8_0, q4_1 and q5_1; s in q4_0 and q5_0 for numbers of the sign opposite to
// the largest one, whose range ends at 7 s or 15 s; and the rounding of s and m to f16.
// Deviations: llama.cpp rotates the query instead of rotating keys back; the products are the same but for rounding.
// Queries are not rounded, as llama.cpp's flash attention on processors does (docs/eval.md).
// Where ggml stores -0 as a minimum or decodes to -0, +0 stands here.
// Checked against: ggml of llama-cpp-python 0.3.36 (tests/ggml/blocks.cpp): bytes of blocks and decoded numbers are the
// same to the bit for 20,000 random and hostile blocks per format. In a model
// (tests/ggml/llama_caches_test.py), KL of q8_0 and q4_0 agrees to within 12 % with a graph of llama.cpp in which ggml
// rounds keys and values; with queries rounded too, this graph agrees with llama.cpp's own quantised cache as well.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo q8_0_method();
MethodInfo q5_1_method();
MethodInfo q5_0_method();
MethodInfo q4_1_method();
MethodInfo q4_0_method();

}  // namespace kvbench::methods
