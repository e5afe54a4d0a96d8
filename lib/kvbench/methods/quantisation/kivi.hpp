// SPDX-License-Identifier: Apache-2.0
// kivi4, kivi2: keys rounded per channel, values per token, the most recent tokens in 16 bits.
// KIVI, Liu et al., arXiv 2402.02750, section 3; jy-yuan/KIVI models/llama_kivi.py, quant/new_pack.py.
//
// Keys: groups of G consecutive tokens of one channel. Values: groups of G consecutive channels of one token. A group
// stores its minimum m and its step s = (max - m) / (2^bits - 1) in f16; the code of x is round((x - m) / s), ties to
// even. Keys are those after RoPE.
// Waiting keys: the last n mod R tokens of the prompt; decoded tokens join them, and all R are encoded once R wait,
// after that step's attention. Waiting values: the last R tokens; each step encodes one, after its attention.
// In a composition, groups run over the tokens that are kept, in the order of the cache.
//
// Parameters: group (G, 32), residual (R, 128; R % G = 0), both as in the released scripts.
// Complexity: O(n (d + dv)) to encode and to decode. Memory: (bits + 32 / G) / 16 of the encoded tokens.
// Worst-case error of a number: s / 2, and the rounding of m and s to f16.
// Deviations: the released code computes (x - m) / s in f16 and gives 0 / 0 for a group of equal numbers, which is
// decoded to m here.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo kivi4_method();
MethodInfo kivi2_method();

}  // namespace kvbench::methods
