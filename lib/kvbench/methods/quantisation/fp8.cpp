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
#include <algorithm>

#include <kvbench/methods/quantisation/fixed_scale_codec.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

struct Fp8Params {
  enum class Form { e4m3, e5m2 } form = Form::e4m3;
  enum class Scale { one, tensor, head, token_head } scale = Scale::one;
};
void fields(ParamVisitor& visitor, Fp8Params& params) {
  visitor.choice("form", params.form, {"e4m3", "e5m2"}, "bits of exponent and mantissa");
  visitor.choice(
      "scale", params.scale, {"one", "tensor", "head", "token-head"},
      "what shares a scale: everything the scale 1, the kv heads of a layer, a kv head, a token of a kv head");
}

kernels::GroupFormat format_of(Fp8Params::Form form) {
  return form == Fp8Params::Form::e4m3 ? e4m3_format() : e5m2_format();
}

std::vector<Buffer<const float>> arrays_of(std::span<const HeadPrompt> heads, Buffer<const float> HeadPrompt::*array) {
  std::vector<Buffer<const float>> arrays;
  for (const HeadPrompt& head : heads) arrays.push_back(head.*array);
  return arrays;
}

/// The codecs of the keys or the values of these heads.
std::vector<std::shared_ptr<const Codec>> codecs_of(std::span<const HeadPrompt> heads,
                                                    Buffer<const float> HeadPrompt::*array, const Fp8Params& params,
                                                    Backend& backend) {
  const kernels::GroupFormat format = format_of(params.form);
  const auto scale_of = [&](std::span<const HeadPrompt> of) {
    return prompt_scale(arrays_of(of, array), format.peak, backend);
  };
  const float layer_scale = params.scale == Fp8Params::Scale::tensor ? scale_of(heads) : 1;
  std::vector<std::shared_ptr<const Codec>> codecs;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (params.scale == Fp8Params::Scale::token_head) {
      kernels::GroupFormat of_token = format;
      of_token.group = std::max<Index>(1, (heads[h].*array).cols());
      of_token.quotient = kernels::GroupFormat::Quotient::inverse;
      codecs.push_back(std::make_shared<GroupCodec>(GroupCodecSettings{.format = of_token}));
    } else if (params.scale == Fp8Params::Scale::head) {
      codecs.push_back(std::make_shared<FixedScaleCodec>(format, scale_of(heads.subspan(h, 1)), true));
    } else {
      // The scale of a layer is stored once, with its first head; 1 is not stored.
      codecs.push_back(
          std::make_shared<FixedScaleCodec>(format, layer_scale, params.scale == Fp8Params::Scale::tensor && h == 0));
    }
  }
  return codecs;
}

std::vector<std::string> level(const Fp8Params&) { return {"8 bits"}; }

std::vector<Codecs> layer_codecs(std::span<const HeadPrompt> heads, const Fp8Params& params, std::size_t, std::uint32_t,
                                 Backend& backend) {
  const HeadPrompt& any = heads.front();
  if (params.scale == Fp8Params::Scale::tensor && std::ssize(heads) < any.num_kv_heads)
    throw Unavailable(fmt::format("scale=tensor needs the keys and values of all {} kv heads of the layer, and has {}",
                                  any.num_kv_heads, heads.size()));
  const auto keys = codecs_of(heads, &HeadPrompt::keys, params, backend);
  const auto values = codecs_of(heads, &HeadPrompt::values, params, backend);
  std::vector<Codecs> codecs;
  for (std::size_t h = 0; h < heads.size(); ++h) codecs.push_back({keys[h], values[h]});
  return codecs;
}

}  // namespace

MethodInfo fp8_method() {
  return quantiser<Fp8Params>(
      {.name = "fp8",
       .paper = "vLLM, quantized_kvcache.md",
       .summary = "all tokens as floating-point numbers of 8 bits",
       .notes = "vLLM takes calibrated scales from other texts; scale=tensor and scale=head take them from the prompt.",
       .granularity = Granularity::layer,
       .variants = {{{"scale", "tensor"}}, {{"scale", "token-head"}}},
       .independent_heads =
           [](const Params& params) { return params.as<Fp8Params>().scale != Fp8Params::Scale::tensor; },
       .one_rule = [](const Params& params) -> Index {
         return params.as<Fp8Params>().scale == Fp8Params::Scale::token_head ? 0 : 1;
       }},
      level, layer_codecs, Encodes::each);
}

}  // namespace kvbench::methods
