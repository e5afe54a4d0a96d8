// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/kivi.hpp>

#include <kvbench/methods/quantisation/group_codec.hpp>
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
