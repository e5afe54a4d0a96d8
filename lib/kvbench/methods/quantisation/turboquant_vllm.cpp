// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/turboquant_vllm.hpp>

#include <algorithm>
#include <bit>

#include <kvbench/methods/quantisation/fixed_scale_codec.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
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
       .complexity = {.compress = "O(n (d log d + dv))"}},
      level, codecs);
}

}  // namespace kvbench::methods
