// SPDX-License-Identifier: Apache-2.0
// fp8: keys and values as floating-point numbers of 8 bits, as in the quantised caches of vLLM.
// vllm-project/vllm docs/features/quantization/quantized_kvcache.md; scaled_convert in
// csrc/quantization/w8a8/fp8/nvidia/quant_utils.cuh; _reshape_cache_per_token_head in
// vllm/v1/attention/ops/triton_reshape_and_cache_flash.py. Calibrated scales: calculate_qparams in
// vllm-project/compressed-tensors src/compressed_tensors/quantization/utils/helpers.py, which llm-compressor uses.
//
// The code of x is x / s rounded to the nearest number of the format, ties to even, and to the largest one (448 in
// e4m3, 57344 in e5m2) beyond it. It is decoded to code s.
//   scale=one         s = 1: vLLM without calibration
//   scale=tensor      s = max |x| / largest over the prompt and all kv heads of the layer, keys and values apart
//   scale=head        the same over the prompt and one kv head
//   scale=token-head  the same over one token of one kv head: vLLM's fp8_per_token_head; encoding multiplies by 1 / s
// Scales are stored in fp32. Those of a prompt stay while tokens are decoded, whose numbers may saturate; they are 1
// where the prompt is empty or all 0.
//
// Parameters: form (e4m3), scale (one).
// Complexity: O(n (d + dv)) to encode and to decode. Memory: 8 / 16 of the cache in 16 bits, and 32 bits per scale.
// Worst-case error of a number, with 3 or 2 bits of mantissa m (e4m3, e5m2) and the smallest positive number t (2^-9,
// 2^-16): max(|x| / (2^(m + 1) + 1), s t / 2, |x| - largest s). In scale=token-head also max |x| where it is below
// 2^-128 largest, since 1 / s is infinite there.
// Deviations: vLLM calibrates on other texts, here the prompt itself is read; its own estimate while it starts
// (calculate_kv_scales) divides by 200 for keys and 100 for values, not by 448; it has calibrated and per-token scales
// for e4m3 only; the scale of a token is at least 1e-6 there. compressed-tensors takes the epsilon of fp32 for a scale
// of 0. A cache of several arrays counts the scale of a prompt once for each.
// Checked against: arithmetic by hand of the rules above (tests/unit/methods/quantisation/fp8.cpp); not run beside
// vLLM.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo fp8_method();

}  // namespace kvbench::methods
