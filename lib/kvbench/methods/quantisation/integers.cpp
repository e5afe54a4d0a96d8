// SPDX-License-Identifier: Apache-2.0
// int, int8, int4, int2: keys and values rounded to integers, the plain baseline of all quantisers.
//
// Each group of consecutive channels of a token stores its minimum m and its step s = (max - m) / (2^bits - 1), both
// rounded to f16. The code of x is round((x - m) / s), ties to even, clamped to [0, 2^bits - 1], and is decoded to
// m + code s. A group of equal numbers has s = 0 and is decoded to m.
// With group=0, a token of a head is one group.
// int8[form=vllm] is vLLM's int8_per_token_head (_reshape_cache_per_token_head in
// vllm/v1/attention/ops/triton_reshape_and_cache_flash.py): s = max |x| / 127 over a token of a head, in fp32; the code
// is x (1 / s), rounded since vllm-project/vllm #45361 (June 2026). Before, storing a float as int8 cut it to a whole
// number (form=vllm-cut): numbers shrink by half a step on average.
// int4[group=0,form=vllm] is its int4_per_token_head (#40835; int4_per_token_head.py of 055e47c2): the row times a
// Hadamard matrix with fixed signs, then a step of its range / 15 and the zero point, a code, in the last bits of the
// step in fp32.
// int4 and int8[group=64,form=mlx] are mlx's affine mode of 4 and 8 bits, which mlx-lm stores its cache in (--kv-bits;
// affine_quantize in mlx/backend/metal/kernels/quantized.h): the step is stretched so that the end of the range with
// the larger magnitude is decoded exactly and zero nearly. Codes follow from steps in fp32, which are stored in bf16.
//
// int[form=exl3] is exllamav3's quantised cache (exllamav3_ext/cache/q_cache_kernels.cuh of 4f8ad01, without its
// compander, which is off by default): y is a block of 32 channels times a Hadamard matrix / sqrt(32); s = max |y| is
// stored in f16; with m = 2^(bits - 1) the code is min(2^bits - 1, floor(y / s m + m)), and is decoded to
// (code + 1/2 - m) s / m. No level is 0, and the largest number shrinks by s / 2m.
//
// Parameters: group, form. `int` chooses the bits, of 8, 6, 5, 4, 3 and 2, by the budget; bits sets them, and
// value_bits sets those of values apart.
// Complexity: O(n (d + dv)) to encode and to decode. Memory: (bits + 32 / group) / 16 of the cache in 16 bits;
// with form=exl3 (bits + 1/2) / 16.
// Worst-case error of a number: (max - min) / (2 (2^bits - 1)), and the rounding of m and s to f16 (mlx: bf16).
// Deviations: there is no paper. vLLM's scale is at least 1e-6. mlx stores in the type of the model, bf16 or f16.
// exllamav3 reads and writes rows in f16.
// vLLM rounds rotated rows to 16 bits, too, and the last four bits of the step of int4 are the zero point.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/quantisation/turned_codec.hpp>
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

enum class Form { range, mlx, vllm, vllm_cut };  // int4 has the first three

struct Int4Params : IntegerParams {
  Form form = Form::range;
};
void fields(ParamVisitor& visitor, Int4Params& params) {
  fields(visitor, static_cast<IntegerParams&>(params));
  visitor.choice("form", params.form, {"range", "mlx", "vllm"},
                 "minimum and step of a group; mlx's, with group=32, 64, 128; or vLLM's int4_per_token_head, with "
                 "group=0");
}
struct Int8Params : IntegerParams {
  Form form = Form::range;
};
void fields(ParamVisitor& visitor, Int8Params& params) {
  fields(visitor, static_cast<IntegerParams&>(params));
  visitor.choice("form", params.form, {"range", "mlx", "vllm", "vllm-cut"},
                 "minimum and step of a group; mlx's, with group=32, 64, 128; or vLLM's int8_per_token_head, now and "
                 "before #45361, with group=0");
}
void check_form(Form form, Index group) {
  if (form == Form::mlx && group != 32 && group != 64 && group != 128)
    throw Error("parameter 'form': mlx has groups of 32, 64 and 128 channels; give group=64, the default of mlx-lm");
  if ((form == Form::vllm || form == Form::vllm_cut) && group != 0)
    throw Error("parameter 'form': vLLM has one scale for a token of a head; give group=0");
}
void check(const Int4Params& params) { check_form(params.form, params.group); }
void check(const Int8Params& params) { check_form(params.form, params.group); }

struct IntParams : IntegerParams {
  Index bits = 0, value_bits = 0;
  enum class Form { range, exl3 } form = Form::range;
};
constexpr Index exl3_channels = 32;
void fields(ParamVisitor& visitor, IntParams& params) {
  fields(visitor, static_cast<IntegerParams&>(params));
  visitor.integer("bits", params.bits, {.min = 0, .max = 8},
                  "of a code; 0: as many of 8, 6, 5, 4, 3 and 2 as fit the budget");
  visitor.integer("value_bits", params.value_bits, {.min = 0, .max = 8}, "of a code of values; 0: as of keys");
  visitor.choice("form", params.form, {"range", "exl3"}, "minimum and step of a group; or exllamav3's, with group=32");
}
void check(const IntParams& params) {
  if (params.value_bits > 0 && params.bits == 0)
    throw Error("parameter 'value_bits' needs the bits of keys, such as bits=4");
  if (params.form == IntParams::Form::exl3 &&
      (params.group != exl3_channels || params.bits == 1 || params.value_bits == 1))
    throw Error("parameter 'form': exllamav3 has groups of 32 channels, and codes of 2 to 8 bits");
}

std::string name_of_bits(Index bits) { return fmt::format("{} bit{}", bits, bits == 1 ? "" : "s"); }

std::shared_ptr<const Codec> codec_of(Index bits, const IntegerParams& params, Index columns) {
  const Index group = params.group == 0 ? std::max<Index>(1, columns) : params.group;
  return std::make_shared<GroupCodec>(GroupCodecSettings{.format = range_format(static_cast<int>(bits), group)});
}

/// The middles of 2^bits equal parts of -1 to 1.
std::shared_ptr<const Codebook> middles(Index bits) {
  const auto book = std::make_shared<Codebook>();
  const auto m = static_cast<float>(1 << (bits - 1));
  for (int code = 0; code < 1 << bits; ++code) {
    const auto number = static_cast<float>(code);
    if (code > 0) book->midpoints.push_back(number / m - 1);
    book->levels.push_back((number + 0.5f) / m - 1);
  }
  return book;
}

std::shared_ptr<const Codec> exl3_codec(Index bits) {
  return std::make_shared<GroupCodec>(GroupCodecSettings{.format = {.group = exl3_channels,
                                                                    .scale = kernels::Scale::largest,
                                                                    .peak = 1,
                                                                    .quotient = kernels::GroupFormat::Quotient::inverse,
                                                                    .grid = kernels::Grid::codebook,
                                                                    .bits = static_cast<int>(bits)},
                                                         .codebook = middles(bits),
                                                         .encode_with_stored = false,
                                                         .hadamard = exl3_channels});
}

Codecs codecs_of(const HeadPrompt& head, Index bits, Index value_bits, const IntegerParams& params) {
  return {codec_of(bits, params, head.keys.cols()), codec_of(value_bits, params, head.values.cols())};
}

/// The integers -128 to 127, and where numbers that are cut to them change from one to the next: a negative one above
/// it, and a positive one at the next.
std::shared_ptr<const Codebook> cut_integers() {
  Codebook book;
  for (int level = -128; level <= 127; ++level) {
    const auto number = static_cast<float>(level);
    if (level > -128) book.midpoints.push_back(level > 0 ? number : std::nextafter(number - 1, 1.0f));
    book.levels.push_back(number);
  }
  return std::make_shared<const Codebook>(std::move(book));
}

std::shared_ptr<const Codec> vllm_codec(Index columns, bool cut) {
  static const std::shared_ptr<const Codebook> integers = cut_integers();
  GroupCodecSettings settings{.format = row_of_int8(columns)};
  if (cut) {
    settings.format.grid = kernels::Grid::codebook;
    settings.codebook = integers;
  }
  return std::make_shared<GroupCodec>(settings);
}

/// vLLM's rotation: the Sylvester-Hadamard matrix / sqrt(d), with columns of the signs _get_rht_signs(d, 0).
/// PyTorch's generator draws them from one seed, so that a shorter row has the first signs of a longer one.
std::vector<double> vllm_rotation(Index d) {
  constexpr std::uint64_t positive[] = {0x808035b16573590d, 0x6b7f5438a6443d6c, 0xabafc4414aa48b81, 0xfa2043a0320b9848,
                                        0xa8a9c7cb4d6e1c33, 0x9803b3591b951dda, 0xcd26200e3038796e, 0x8a9dacb9c9a02476};
  if (d < 2 || d > 64 * std::ssize(positive) || !std::has_single_bit(static_cast<std::uint64_t>(d)))
    throw Unavailable(fmt::format("vLLM rotates a power of two of channels, and kvbench at most 512, not {}", d));
  const double size = 1 / std::sqrt(static_cast<double>(d));
  std::vector<double> out;
  for (std::uint64_t j = 0; j < static_cast<std::uint64_t>(d); ++j) {
    for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(d); ++k)
      out.push_back((positive[k / 64] >> k % 64 & 1) == static_cast<unsigned>(std::popcount(j & k)) % 2 ? -size : size);
  }
  return out;
}

std::shared_ptr<const Codec> vllm_int4_codec(Index d) {
  const kernels::GroupFormat format = {.group = d,
                                       .scale = kernels::Scale::zero_point,
                                       .quotient = kernels::GroupFormat::Quotient::inverse,
                                       .stored = kernels::Stored::f32,
                                       .rounding = kernels::Rounding::half_away};
  return std::make_shared<TurnedCodec>([turn = vllm_rotation(d)] { return turn; },
                                       GroupCodecSettings{.format = format});
}

std::shared_ptr<const Codec> mlx_codec(Index bits, Index group) {
  kernels::GroupFormat format = range_format(static_cast<int>(bits), group);
  format.scale = kernels::Scale::edge;
  format.stored = kernels::Stored::bf16;
  format.rounding = kernels::Rounding::half_away;
  return std::make_shared<GroupCodec>(GroupCodecSettings{.format = format, .encode_with_stored = false});
}

template <Index bits, class P>
std::vector<std::string> fixed_level(const P&) {
  return {name_of_bits(bits)};
}
template <Index bits, class P>
Codecs fixed_codecs(const HeadPrompt& head, const P& params, std::size_t, std::uint32_t, Backend&) {
  if constexpr (!std::is_same_v<P, IntegerParams>) {
    const bool cut = params.form == Form::vllm_cut;
    if (params.form == Form::mlx) return {mlx_codec(bits, params.group), mlx_codec(bits, params.group)};
    if (bits == 4 && params.form == Form::vllm)
      return {vllm_int4_codec(head.keys.cols()), vllm_int4_codec(head.values.cols())};
    if (params.form != Form::range) return {vllm_codec(head.keys.cols(), cut), vllm_codec(head.values.cols(), cut)};
  }
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
  const Index of_values = params.value_bits > 0 ? params.value_bits : bits;
  if (params.form == IntParams::Form::exl3) return {exl3_codec(bits), exl3_codec(of_values)};
  return codecs_of(head, bits, of_values, params);
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

/// Engines refuse heads that their groups do not fill.
template <class P>
ChannelBlock filled_block([[maybe_unused]] const Params& params) {
  if constexpr (std::is_same_v<P, IntParams>) {
    if (params.as<P>().form == IntParams::Form::exl3) return {exl3_channels, "a group of exllamav3"};
  } else if constexpr (!std::is_same_v<P, IntegerParams>) {
    if (const auto& own = params.as<P>(); own.form == Form::mlx) return {own.group, "a group of mlx"};
  }
  return {};
}

constexpr const char* paper = "baseline";

template <Index bits, class P = IntegerParams>
MethodInfo fixed_method(const char* notes) {
  return quantiser<P>({.name = fmt::format("int{}", bits),
                       .paper = paper,
                       .summary = fmt::format("all tokens in integers of {} bits, by groups of channels", bits),
                       .notes = notes,
                       .block = filled_block<P>,
                       .one_rule = group_rule<P>},
                      fixed_level<bits, P>, fixed_codecs<bits, P>, Encodes::each);
}

}  // namespace

MethodInfo int_method() {
  return quantiser<IntParams>({.name = "int",
                               .paper = paper,
                               .summary = "all tokens in integers of as many bits as fit the budget",
                               .notes = "The row reports the bits. [form=exl3] is the quantised cache of exllamav3.",
                               .block = filled_block<IntParams>,
                               .one_rule = group_rule<IntParams>},
                              levels_of, codecs_at, Encodes::each);
}
MethodInfo int8_method() {
  return fixed_method<8, Int8Params>(
      "[group=64,form=mlx] is what mlx-lm stores, [group=0,form=vllm] is vLLM's int8_per_token_head. Before #45361 "
      "(June 2026) it cut numbers instead of rounding "
      "them: form=vllm-cut.");
}
MethodInfo int4_method() {
  return fixed_method<4, Int4Params>(
      "[group=0,form=vllm] is vLLM's int4_per_token_head (#40835), which rotates; [group=64,form=mlx] is what mlx-lm "
      "stores.");
}
MethodInfo int2_method() { return fixed_method<2>("kivi2 shares steps of keys over tokens instead of channels."); }

}  // namespace kvbench::methods
