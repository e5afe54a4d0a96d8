// SPDX-License-Identifier: Apache-2.0
// kvquant-nofisher: keys before RoPE per channel, values per token, codebooks fitted to a text, outliers stored apart.
// KVQuant, Hooper et al., arXiv 2401.18079; SqueezeAILab/KVQuant quant/kvquant/simquant_module_quantizer.py, as
// quant/llama_simquant.py runs it with --nuq --include_sparse --sparsity-threshold 0.99, without --fisher.
//
// Keys, turned back by RoPE: each channel has the percentiles 0.5 and 99.5 of the calibration text, l and u, in f16.
// Numbers below l or above u are outliers. Of the others, y = (x - o) / s with o = (u + l) / 2 and s = (u - l) / 2 in
// f16 becomes the code of the nearest level. Decoded keys are turned forth again.
// Values: the numbers of a token in all kv heads of the layer have the percentiles 0.5 and 99.5 of their own; those at
// or beyond them are outliers. The largest and smallest of the others, and of the median of all, give o and s as above,
// which are stored in f16.
// Levels: one codebook of 2^bits for the keys of a layer and one for its values, by k-means (at most 50 iterations)
// over all y of the calibration text that are no outliers; y of values are computed with the percentiles of the token.
// Outliers are stored in f16 beside a column in 16 bits, and a row pointer in 32 bits for each token.
// Codebooks, row pointers and o and s of values are stored once for a layer, with its first kv head.
// The calibration text is that of --calibrate; without it, the context itself, and the row says so. Where the model has
// no RoPE, or a scaled one, rows are skipped.
//
// Parameters: bits, 0 (default) lets the budget choose from 4, 3 and 2; first (false): the first token is exact, counts
// 16 bits a number beside its codes, and is not in the codebooks; the released --first_few_fp16 1.
// Complexity: O(n (d + dv)) to encode and to decode; sorting for the codebooks takes log n times that.
// Memory: about (bits + 0.01 * 32) / 16 of the cache in 16 bits, and 96 bits for each token of a layer.
// Worst-case error of a number that is no outlier: s times the largest of half the distances between neighbouring
// levels, level_1 + 1 and 1 - level_2^b, and what the rounding of o and s to f16 adds. Of an outlier: its rounding to
// f16. Of keys this holds before RoPE, which turns pairs of channels and keeps the norm of their error.
// Deviations: the name says the largest. The released code weights the k-means by squared gradients (Fisher), which a
// trace does not have. Its k-means starts from random centroids (scikit-learn), here from medians of equal parts; its
// keys are normalised by percentiles in fp32 for the k-means, here by those in f16. It does not store o and s of values
// in f16, and rounds all decoded numbers to f16. At a midpoint of levels it takes the lower one, here the higher.
// Q-Norm, capped counts of outliers and clamping, which it has too, are off by default there and absent here.
// Where heads of a composition hold different tokens, what is stored once for a layer counts for those of the first.
// Rows that are no token's own, such as means, have no position and no other heads: such compositions are skipped.
// Outliers, thresholds and codebooks are computed on the host.
// Checked against: arithmetic by hand of the rules above (tests/unit/methods/quantisation/kvquant.cpp); not run beside
// the released code.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo kvquant_nofisher_method();

}  // namespace kvbench::methods
