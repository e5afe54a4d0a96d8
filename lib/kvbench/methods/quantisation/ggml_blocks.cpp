// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/ggml_blocks.hpp>

#include <kvbench/methods/quantisation/ggml_formats.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

using kernels::GroupFormat;

constexpr Index least_turn = 64;  // channels that a rotation mixes

struct BlockParams {
  bool hadamard = false;
};
void fields(ParamVisitor& visitor, BlockParams& params) {
  visitor.flag("hadamard", params.hadamard, "rotate channels before rounding, as llama.cpp does where d % 64 = 0");
}
struct Q8Params : BlockParams {
  enum class Round { even, away } round = Round::even;
};
void fields(ParamVisitor& visitor, Q8Params& params) {
  fields(visitor, static_cast<BlockParams&>(params));
  visitor.choice("round", params.round, {"even", "away"}, "where ties of codes go");
}

Index rotation_of_keys(Index d) {
  Index turn = least_turn;
  while (d % (2 * turn) == 0) turn *= 2;
  return turn;
}

Codecs codecs_of(const HeadPrompt& head, const GroupFormat& format, bool hadamard) {
  const auto codec = [&](Index turn) {
    return std::make_shared<GroupCodec>(
        GroupCodecSettings{.format = format, .encode_with_stored = false, .hadamard = hadamard ? turn : 0});
  };
  return {codec(rotation_of_keys(head.keys.cols())), codec(least_turn)};
}

std::vector<std::string> q8_0_level(const Q8Params&) { return {"8.5 bits"}; }
Codecs q8_0_codecs(const HeadPrompt& head, const Q8Params& params, std::size_t, std::uint32_t, Backend&) {
  return codecs_of(head, params.round == Q8Params::Round::even ? ggml::q8_0 : ggml::q8_0_reference, params.hadamard);
}
std::vector<std::string> q5_1_level(const BlockParams&) { return {"6 bits"}; }
Codecs q5_1_codecs(const HeadPrompt& head, const BlockParams& params, std::size_t, std::uint32_t, Backend&) {
  return codecs_of(head, ggml::q5_1, params.hadamard);
}
std::vector<std::string> q4_0_level(const BlockParams&) { return {"4.5 bits"}; }
Codecs q4_0_codecs(const HeadPrompt& head, const BlockParams& params, std::size_t, std::uint32_t, Backend&) {
  return codecs_of(head, ggml::q4_0, params.hadamard);
}
std::vector<std::string> q4_1_level(const BlockParams&) { return {"5 bits"}; }
Codecs q4_1_codecs(const HeadPrompt& head, const BlockParams& params, std::size_t, std::uint32_t, Backend&) {
  return codecs_of(head, ggml::q4_1, params.hadamard);
}

template <class P>
ChannelBlock block_of(const Params& params) {
  if (params.as<P>().hadamard) return {least_turn, "a rotation of llama.cpp"};
  return {ggml::block_channels, "a block of ggml"};
}

template <class P>
MethodInfo row(const char* name, const char* bits) {
  return {.name = name,
          .paper = "llama.cpp, ggml-quants.c",
          .summary = fmt::format("all tokens in ggml's blocks of 32 channels, {} bits a number", bits),
          .notes = "llama.cpp sets hadamard where the head dimension is a multiple of 64 (#21038).",
          .complexity = {.compress = "O(n (d + dv) log d)"},
          .variants = {{{"hadamard", "true"}}},
          .block = block_of<P>};
}

}  // namespace

MethodInfo q8_0_method() { return quantiser<Q8Params>(row<Q8Params>("q8_0", "8.5"), q8_0_level, q8_0_codecs); }
MethodInfo q5_1_method() { return quantiser<BlockParams>(row<BlockParams>("q5_1", "6"), q5_1_level, q5_1_codecs); }
MethodInfo q4_0_method() { return quantiser<BlockParams>(row<BlockParams>("q4_0", "4.5"), q4_0_level, q4_0_codecs); }
MethodInfo q4_1_method() { return quantiser<BlockParams>(row<BlockParams>("q4_1", "5"), q4_1_level, q4_1_codecs); }

}  // namespace kvbench::methods
