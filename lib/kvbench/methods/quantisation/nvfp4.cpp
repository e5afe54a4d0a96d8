// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/nvfp4.hpp>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/prompt_scale.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

constexpr Index block_channels = 16;
constexpr float largest_code = 6, largest_block_scale = 448;

kernels::GroupFormat format_of(float tensor_scale) {
  return {.group = block_channels,
          .scale = kernels::Scale::largest,
          .peak = largest_code,
          .stored = kernels::Stored::e4m3,
          .unit = tensor_scale,
          .grid = kernels::Grid::minifloat,
          .bits = 4,
          .exponent_bits = 2,
          .mantissa_bits = 1,
          .largest = largest_code};
}

class Nvfp4Codec : public GroupCodec {
 public:
  explicit Nvfp4Codec(float tensor_scale) : GroupCodec({.format = format_of(tensor_scale)}) {}

  Footprint footprint(Index rows, Index cols) const override {
    Footprint arrays = GroupCodec::footprint(rows, cols);
    arrays.push_back({.name = "scale of the tensor", .element = Element::f32, .rows = 1, .cols = 1});
    return arrays;
  }
};

std::shared_ptr<const Codec> codec_of(const Buffer<const float>& rows, Backend& backend) {
  return std::make_shared<Nvfp4Codec>(prompt_scale({rows}, largest_code * largest_block_scale, backend));
}

ChannelBlock block(const Params&) { return {block_channels, "a block of nvfp4"}; }
std::vector<std::string> level(const NoParams&) { return {"4.5 bits"}; }

Codecs codecs(const HeadPrompt& head, const NoParams&, std::size_t, std::uint32_t, Backend& backend) {
  return {codec_of(head.keys, backend), codec_of(head.values, backend)};
}

}  // namespace

MethodInfo nvfp4_method() {
  return quantiser<NoParams>(
      {.name = "nvfp4",
       .paper = "NVIDIA NVFP4; vLLM #37192",
       .summary = "all tokens as floating-point numbers of 4 bits, in blocks of 16 channels",
       .notes = "The scale of the tensor is that of the prompt's keys or values of a kv head; vLLM has one per layer.",
       .engine = Engine::vllm,
       .block = block,
       .one_rule = [](const Params&) { return block_channels; }},
      level, codecs);
}

}  // namespace kvbench::methods
