// SPDX-License-Identifier: Apache-2.0
// nvfp4: keys and values as floating-point numbers of 4 bits in blocks of 16 channels, NVIDIA's format.
// vllm-project/vllm #37192; csrc/libtorch_stable/quantization/fp4/nvfp4_kv_cache_kernels.cu and nvfp4_utils.cuh
// (cvt_warp_fp16_to_fp4). Scale of the tensor: vllm-project/compressed-tensors
// src/compressed_tensors/quantization/utils/helpers.py (generate_gparam); "Introducing NVFP4", NVIDIA, June 2025.
//
// g = max |x| / (448 6) over the keys (or the values) of the prompt of a kv head, in fp32; 1 where the prompt is empty
// or all 0. A block stores c = max |x| / 6 / g in e4m3: to nearest, ties to even, at most 448. The code of x is that of
// x / (c g) rounded to the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (e2m1), ties to the even mantissa,
// beyond 6 to 6. It is decoded to code (c g). A block with c = 0 is decoded to 0. g stays while tokens are decoded.
//
// form=4over6 ("Four Over Six", arXiv 2512.02010; vLLM's nvfp4_4over6, vllm-project/vllm #45187) also tries
// c = max |x| / 4 / g, whose codes end at 4, and keeps it where the sum of squared errors of the block is smaller.
//
// Parameters: form. 4.5 bits a number.
// Complexity: O(n (d + dv)) to encode and to decode, twice with 4over6. Memory: 4.5 / 16 of the cache in 16 bits, and
// 32 bits per g.
// Worst-case error of a number of a block with s = max |x| / 6, where e = max(s / 17, g / 1024) bounds the rounding of
// c g: max(s + e, 6 e) while s <= 448 g, and max |x| - 2688 g beyond it if that is more. (Half of the gap
// between 4 and 6 is 1.) The sum of squared errors of a block with 4over6 is at most that without.
// Deviations: vLLM has one g for the kv heads of a layer, from a checkpoint or 1, and computes with approximate
// reciprocals. A cache of several arrays counts g once for each. With 4over6 the paper has g = max |x| / (256 6), so
// that the largest block has a choice, too; vLLM leaves g to the checkpoint, and here it is the same. Blocks are
// compared on the processor.
// Checked against: arithmetic by hand of the rules above (tests/unit/methods/quantisation/nvfp4.cpp); not run beside
// vLLM.
#include <kvbench/methods/quantisation/methods.hpp>

#include <algorithm>
#include <span>

#include <kvbench/methods/quantisation/fixed_scale_codec.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

constexpr Index block_channels = 16;
constexpr float largest_code = 6, largest_block_scale = 448;

struct Nvfp4Params {
  enum class Form { fixed, four_over_six } form = Form::fixed;
};
void fields(ParamVisitor& visitor, Nvfp4Params& params) {
  visitor.choice("form", params.form, {"6", "4over6"},
                 "the code of the largest number of a block: 6, or the better one of 4 and 6");
}

/// `peak`: the code of the largest number of a block.
kernels::GroupFormat format_of(float tensor_scale, float peak = largest_code) {
  return {.group = block_channels,
          .scale = kernels::Scale::largest,
          .peak = peak,
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

/// Copies the blocks of `other` that are nearer to those of `rows` than `out` is. Rows are whole numbers of blocks.
void take_nearer(std::span<const float> rows, std::span<const float> other, std::span<float> out) {
  const auto squared_error = [](std::span<const float> decoded, std::span<const float> exact) {
    double sum = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double error = static_cast<double>(decoded[i]) - static_cast<double>(exact[i]);
      sum += error * error;
    }
    return sum;
  };
  for (std::size_t begin = 0; begin < rows.size(); begin += block_channels) {
    const auto exact = rows.subspan(begin, block_channels), four = other.subspan(begin, block_channels);
    const auto kept = out.subspan(begin, block_channels);
    if (squared_error(four, exact) < squared_error(kept, exact)) std::ranges::copy(four, kept.begin());
  }
}

class FourOverSixCodec : public Nvfp4Codec {
 public:
  explicit FourOverSixCodec(float tensor_scale)
      : Nvfp4Codec(tensor_scale), four_({.format = format_of(tensor_scale, 4)}) {}

  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    std::vector<float> out = backend.read(Nvfp4Codec::decoded(rows, backend));
    const auto exact = backend.on_host(rows), four = backend.on_host(four_.decoded(rows, backend));
    take_nearer(exact, four, out);
    return backend.adopt(std::move(out), rows.rows(), rows.cols());
  }

 private:
  GroupCodec four_;
};

std::shared_ptr<const Codec> codec_of(const Buffer<const float>& rows, Nvfp4Params::Form form, Backend& backend) {
  const float scale = prompt_scale({rows}, largest_code * largest_block_scale, backend);
  if (form == Nvfp4Params::Form::four_over_six) return std::make_shared<FourOverSixCodec>(scale);
  return std::make_shared<Nvfp4Codec>(scale);
}

ChannelBlock block(const Params&) { return {block_channels, "a block of nvfp4"}; }
std::vector<std::string> level(const Nvfp4Params&) { return {"4.5 bits"}; }

Codecs codecs(const HeadPrompt& head, const Nvfp4Params& params, std::size_t, std::uint32_t, Backend& backend) {
  return {codec_of(head.keys, params.form, backend), codec_of(head.values, params.form, backend)};
}

}  // namespace

MethodInfo nvfp4_method() {
  return quantiser<Nvfp4Params>(
      {.name = "nvfp4",
       .paper = "NVIDIA NVFP4; vLLM #37192",
       .summary = "all tokens as floating-point numbers of 4 bits, in blocks of 16 channels",
       .notes = "The scale of the tensor is that of the prompt's keys or values of a kv head; vLLM has one per layer.",
       .engine = Engine::vllm,
       .block = block,
       .one_rule = [](const Params&) { return block_channels; }},
      level, codecs, Encodes::each);
}

}  // namespace kvbench::methods
