// SPDX-License-Identifier: Apache-2.0
// kivi4, kivi2: keys rounded per channel, values per token, the most recent tokens in 16 bits.
// KIVI, Liu et al., arXiv 2402.02750, section 3; jy-yuan/KIVI models/llama_kivi.py, quant/new_pack.py.
//
// Keys: groups of G consecutive tokens of one channel. Values: groups of G consecutive channels of one token. A group
// stores its minimum m and its step s = (max - m) / (2^bits - 1) in f16; the code of x is round((x - m) / s), ties to
// even. Keys are those after RoPE.
// Waiting keys: the last n mod R tokens of the prompt; decoded tokens join them, and all R are encoded once R wait,
// after that step's attention. Waiting values: the last R tokens; each step encodes one, after its attention.
// In a composition, groups run over the tokens that are kept, in the order of the cache.
//
// Parameters: group (G, 32), residual (R, 128; R % G = 0), both as in the released scripts.
// Complexity: O(n (d + dv)) to encode and to decode. Memory: (bits + 32 / G) / 16 of the encoded tokens.
// Worst-case error of a number: s / 2, and the rounding of m and s to f16.
// Deviations: the released code computes (x - m) / s in f16 and gives 0 / 0 for a group of equal numbers, which is
// decoded to m here.
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

struct KiviParams {
  Index group = 32, residual = 128;
};
void fields(ParamVisitor& visitor, KiviParams& params) {
  visitor.integer("group", params.group, {.min = 1}, "G: tokens of a group of keys, channels of a group of values");
  visitor.integer("residual", params.residual, {.min = 1}, "R: waiting tokens in 16 bits, a multiple of group");
}
void check(const KiviParams& params) {
  if (params.residual % params.group != 0) {
    throw Error("parameter 'residual' is {}, which is no multiple of 'group' {}", params.residual, params.group);
  }
}

GroupCodecSettings settings_of(int bits, const KiviParams& params) {
  return {.format = range_format(bits, params.group), .waiting = params.residual};
}

template <int bits>
std::vector<std::string> level(const KiviParams&) {
  return {fmt::format("{} bits", bits)};
}

template <int bits>
Codecs codecs(const HeadPrompt&, const KiviParams& params, std::size_t, std::uint32_t, Backend&) {
  GroupCodecSettings keys = settings_of(bits, params), values = keys;
  keys.format.axis = kernels::Axis::tokens;
  keys.residual = Residual::batches;
  values.residual = Residual::window;
  return {std::make_shared<GroupCodec>(keys), std::make_shared<GroupCodec>(values)};
}

template <int bits>
MethodInfo method() {
  return quantiser<KiviParams>(
      {.name = fmt::format("kivi{}", bits),
       .paper = "KIVI, arXiv 2402.02750, section 3",
       .summary = fmt::format("keys per channel and values per token in {} bits, recent tokens exact", bits),
       .notes = "The rules of the waiting tokens are those of the released code."},
      level<bits>, codecs<bits>);
}

}  // namespace

MethodInfo kivi4_method() { return method<4>(); }
MethodInfo kivi2_method() { return method<2>(); }

}  // namespace kvbench::methods
