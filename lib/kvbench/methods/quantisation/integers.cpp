// SPDX-License-Identifier: Apache-2.0
// int, int8, int4, int2: keys and values rounded to integers, the plain baseline of all quantisers.
//
// Each group of consecutive channels of a token stores its minimum m and its step s = (max - m) / (2^bits - 1), both
// rounded to f16. The code of x is round((x - m) / s), ties to even, clamped to [0, 2^bits - 1], and is decoded to
// m + code s. A group of equal numbers has s = 0 and is decoded to m.
// With group=0, a token of a head is one group, as in vLLM's int4_per_token_head (vllm-project/vllm #38854).
//
// Parameters: group. `int` chooses the bits, of 8, 6, 5, 4, 3 and 2, by the budget; bits sets them, and value_bits sets
// those of values apart.
// Complexity: O(n (d + dv)) to encode and to decode. Memory: (bits + 32 / group) / 16 of the cache in 16 bits.
// Worst-case error of a number: (max - min) / (2 (2^bits - 1)), and the rounding of m and s to f16.
// Deviations: none; there is no paper.
#include <array>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

constexpr std::array int_levels = {2, 3, 4, 5, 6, 8};

struct IntegerParams {
  Index group = 32;
};
void fields(ParamVisitor& visitor, IntegerParams& params) {
  visitor.integer("group", params.group, {.min = 0},
                  "channels that share a minimum and a step; 0: the whole head vector");
}

struct IntParams : IntegerParams {
  Index bits = 0, value_bits = 0;
};
void fields(ParamVisitor& visitor, IntParams& params) {
  fields(visitor, static_cast<IntegerParams&>(params));
  visitor.integer("bits", params.bits, {.min = 0, .max = 8},
                  "of a code; 0: as many of 8, 6, 5, 4, 3 and 2 as fit the budget");
  visitor.integer("value_bits", params.value_bits, {.min = 0, .max = 8}, "of a code of values; 0: as of keys");
}
void check(const IntParams& params) {
  if (params.value_bits > 0 && params.bits == 0)
    throw Error("parameter 'value_bits' needs the bits of keys, such as bits=4");
}

std::string name_of_bits(Index bits) { return fmt::format("{} bit{}", bits, bits == 1 ? "" : "s"); }

std::shared_ptr<const Codec> codec_of(Index bits, const IntegerParams& params, Index columns) {
  const Index group = params.group == 0 ? std::max<Index>(1, columns) : params.group;
  return std::make_shared<GroupCodec>(GroupCodecSettings{.format = range_format(static_cast<int>(bits), group)});
}

Codecs codecs_of(const HeadPrompt& head, Index bits, Index value_bits, const IntegerParams& params) {
  return {codec_of(bits, params, head.keys.cols()), codec_of(value_bits, params, head.values.cols())};
}

template <Index bits>
std::vector<std::string> fixed_level(const IntegerParams&) {
  return {name_of_bits(bits)};
}
template <Index bits>
Codecs fixed_codecs(const HeadPrompt& head, const IntegerParams& params, std::size_t, std::uint32_t, Backend&) {
  return codecs_of(head, bits, bits, params);
}

std::vector<std::string> levels_of(const IntParams& params) {
  if (params.value_bits > 0)
    return {fmt::format("{} for keys, {} for values", name_of_bits(params.bits), params.value_bits)};
  if (params.bits > 0) return {name_of_bits(params.bits)};
  std::vector<std::string> names;
  for (const int bits : int_levels) names.push_back(name_of_bits(bits));
  return names;
}
Codecs codecs_at(const HeadPrompt& head, const IntParams& params, std::size_t level, std::uint32_t, Backend&) {
  const Index bits = params.bits > 0 ? params.bits : int_levels.at(level);
  return codecs_of(head, bits, params.value_bits > 0 ? params.value_bits : bits, params);
}

template <class P>
Index group_rule(const Params& params) {
  return params.as<P>().group;
}
template <>
Index group_rule<IntParams>(const Params& params) {
  const auto& own = params.as<IntParams>();
  return own.value_bits == 0 || own.value_bits == own.bits ? own.group : 0;
}

constexpr const char* paper = "baseline";

template <Index bits>
MethodInfo fixed_method() {
  return quantiser<IntegerParams>(
      {.name = fmt::format("int{}", bits),
       .paper = paper,
       .summary = fmt::format("all tokens in integers of {} bits, by groups of channels", bits),
       .notes = "group=0 is vLLM's int4_per_token_head, at its number of bits.",
       .one_rule = group_rule<IntegerParams>},
      fixed_level<bits>, fixed_codecs<bits>, Encodes::each);
}

}  // namespace

MethodInfo int_method() {
  return quantiser<IntParams>({.name = "int",
                               .paper = paper,
                               .summary = "all tokens in integers of as many bits as fit the budget",
                               .notes = "The row reports the bits.",
                               .one_rule = group_rule<IntParams>},
                              levels_of, codecs_at, Encodes::each);
}
MethodInfo int8_method() { return fixed_method<8>(); }
MethodInfo int4_method() { return fixed_method<4>(); }
MethodInfo int2_method() { return fixed_method<2>(); }

}  // namespace kvbench::methods
