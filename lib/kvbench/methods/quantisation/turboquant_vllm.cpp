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
#include <algorithm>
#include <bit>

#include <kvbench/methods/quantisation/fixed_scale_codec.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

enum class Preset { bits44, fp8_4, bits34, bits33 };
struct TurboquantVllmParams {
  Preset preset = Preset::bits44;
};
void fields(ParamVisitor& visitor, TurboquantVllmParams& params) {
  visitor.choice("preset", params.preset, {"4/4", "fp8/4", "3/4", "3/3"}, "bits of keys/values, as vLLM offers them");
}

std::shared_ptr<const Codec> key_codec(Preset preset, Index d) {
  if (preset == Preset::fp8_4) return std::make_shared<FixedScaleCodec>(e4m3_format(), 1.0f, false);
  if (d < 2 || !std::has_single_bit(static_cast<std::uint64_t>(d))) {
    throw Unavailable(fmt::format(
        "vLLM's TurboQuant rotates keys by a Hadamard matrix, which takes a power of two of channels, not {}", d));
  }
  const int bits = preset == Preset::bits44 ? 4 : 3;
  return std::make_shared<GroupCodec>(GroupCodecSettings{
      .format =
          {.group = d, .scale = kernels::Scale::norm, .grid = kernels::Grid::codebook, .bits = bits, .unit_norm = true},
      .codebook = vllm_codebook(d, bits),
      .encode_with_stored = false,
      .hadamard = d});
}

std::shared_ptr<const Codec> value_codec(Preset preset, Index dv) {
  kernels::GroupFormat format = range_format(preset == Preset::bits33 ? 3 : 4, std::max<Index>(1, dv));
  format.rounding = kernels::Rounding::half_up;
  return std::make_shared<GroupCodec>(GroupCodecSettings{.format = format, .encode_with_stored = false});
}

bool whole(const HeadPrompt& head) {
  const Index outer = std::min<Index>(2, head.num_caches / 2);
  return head.depth < outer || (head.depth < head.num_caches && head.depth >= head.num_caches - outer);
}

std::vector<std::string> level(const TurboquantVllmParams& params) {
  constexpr const char* names[] = {"keys 4 bits, values 4", "keys fp8, values 4 bits", "keys 3 bits, values 4",
                                   "keys 3 bits, values 3"};
  return {fmt::format("{}; the first 2 and last 2 layers in 16 bits", names[static_cast<int>(params.preset)])};
}

Codecs codecs(const HeadPrompt& head, const TurboquantVllmParams& params, std::size_t, std::uint32_t, Backend&) {
  if (whole(head)) return {};
  return {key_codec(params.preset, head.keys.cols()), value_codec(params.preset, head.values.cols())};
}

}  // namespace

MethodInfo turboquant_vllm_method() {
  return quantiser<TurboquantVllmParams>(
      {.name = "turboquant@vllm",
       .paper = "vLLM, quantization/turboquant; after TurboQuant, arXiv 2504.19874",
       .summary = "keys by Hadamard matrix and Gaussian codebook, values uniformly, outer layers in 16 bits",
       .notes =
           "vLLM's reading of the paper: no random signs, decoded keys keep their norm, values are not rotated, no "
           "sketch of a residual. The first 2 and last 2 layers are stored whole.",
       .complexity = {.compress = {"O(n (d log d + dv))"}},
       .properties = {.equal_bytes = Property::no("the outer layers are stored whole")}},
      level, codecs);
}

}  // namespace kvbench::methods
