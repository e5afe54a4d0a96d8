// SPDX-License-Identifier: Apache-2.0
// turboquant@vllm: what vLLM stores under the name TurboQuant: keys through a Hadamard matrix and a Gaussian codebook,
// values uniformly, the outer layers whole. vllm-project/vllm model_executor/layers/quantization/turboquant/config.py
// (presets, get_boundary_skip_layers), centroids.py, v1/attention/ops/triton_turboquant_store.py and _decode.py.
//
// Keys in 3 or 4 bits: |k| in f16; y = H k / |k| with the Sylvester-Hadamard matrix / sqrt(d), without random signs;
// the code of a number is how many midpoints of the codebook (lloyd_max.hpp, vllm_codebook) are <= y. Decoded:
// |k| H c / |c| with c the levels of the codes (norm_correction). Keys fp8: e4m3 of the number itself, saturating.
// Values: for the whole row, m = min and s = (max - m) / (2^bits - 1); code = min(2^bits - 1, trunc((v - m) / s + 0.5))
// with both in fp32; decoded code s + m with both in f16.
// The first 2 and the last 2 layers of the model, at most half of them, are stored in 16 bits, and count them.
// There is no sketch of a residual: vLLM's authors found that it hurts.
//
// Parameters: preset, keys/values: 4/4 (turboquant_4bit_nc, default), fp8/4 (k8v4), 3/4 (k3v4_nc), 3/3 (3bit_nc).
// Complexity: O(n (d log d + dv)). Memory: keys (bits + 16 / d) / 16, values (bits + 32 / dv) / 16 of 16 bits.
// Worst-case error: values s / 2 and the rounding of s and m to f16; keys |k - decoded| <= 2 |k|, typically
// 0.1 |k| at 4 and 0.19 |k| at 3 bits; fp8 1/16 of the number, and all above 448.
// Deviations: vLLM divides by |k| + 1e-8 before it rotates, here k is rotated first and divided by |k|: equal but for
// rounding, and for keys shorter than 1e-3. It stores s of at least 1e-8, which f16 rounds to 0: the same numbers. It
// rotates the query instead of the key. On GPUs before Ada it stores keys in another format than e4m3.
// Hybrid models have no whole layers in vLLM; a trace does not say whether a model is one.
// Checked against: a transcription of centroids.py in Python (levels and midpoints, in the tests), and by hand.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo turboquant_vllm_method();

}  // namespace kvbench::methods
