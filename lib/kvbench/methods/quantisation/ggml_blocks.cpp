// SPDX-License-Identifier: Apache-2.0
// q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl: the formats of llama.cpp's quantised caches; q6_0, q4_0[form=ik] and
// q8_0[form=kv]: those of its fork ik_llama.cpp.
// ggml-org/ggml src/ggml-quants.c: quantize_row_q8_0_ref, quantize_row_q5_1_ref, quantize_row_q5_0_ref,
// quantize_row_q4_1_ref, quantize_row_q4_0_ref, quantize_row_iq4_nl_impl; src/ggml-cpu/arch/x86/quants.c:
// quantize_row_q8_0; src/ggml-cuda/cpy-utils.cuh: quantize_f32_iq4_nl_block.
// ikawrakow/ik_llama.cpp ggml/src/ggml-quants.c: quantize_row_q6_0_ref; ggml/src/iqk/iqk_quantize.cpp:
// iqk_quantize_q4_0, iqk_quantize_row_q8_KV.
//
// A block is 32 consecutive channels of a token. Codes follow from scales in fp32, and are decoded with the scales as
// they are stored, in f16.
//   q8_0  s = max |x| / 127; code = round(x 127 / max |x|); decoded code s. 34 bytes.
//   q8_0[form=kv]  keys in q8_KV: s = max |x| / 127 over the key of a head, in fp32; code = round(x / s), ties to even;
//         decoded code s; the sum of the codes is stored too. d + 8 bytes a key. Values are q8_0: q8_KV is for keys.
//   q4_0  s = x / -8 of the x with the largest |x|; code = min(15, trunc(x / s + 8.5)); decoded (code - 8) s. 18 bytes.
//   q5_0  s = x / -16 of this x; code = min(31, trunc(x / s + 16.5)); decoded (code - 16) s. 22 bytes.
//   q6_0  s = x / -32 of this x; code = min(63, trunc(x / s + 32.5)); decoded code - 32 times a second scale, which
//         fits the codes to the block by least squares with weights x^2. 26 bytes.
//   q4_0[form=ik]  s as in q4_0; code = min(15, round(x / s) + 8); decoded code - 8 times a second scale, as in q6_0.
//   q4_1  m = min, s = (max - min) / 15; code = min(15, trunc((x - m) / s + 0.5)); decoded code s + m. 20 bytes.
//   q5_1  the same with 31. 24 bytes.
//   iq4_nl  s = x / -127 of the x with the largest |x|; code = the nearest of 16 uneven levels to x / s, the higher of
//         two; decoded level times a second scale, which fits these levels to the block by least squares with weights
//         x^2. No level is 0. 18 bytes.
// x / s is computed as x times the fp32 number 1 / s, as ggml does.
//
// Parameters: hadamard rotates blocks of channels before they are rounded (llama.cpp #21038): of keys the largest
// power of two from 64 on that divides d, of values 64. round (q8_0): ties of codes go to the even one, as llama.cpp
// rounds on x86, or away from zero, as its reference function does. form (q4_0, q8_0): ggml's rule or that of
// ik_llama.cpp; values=q4_0 beside other keys is ggml's. values: a format of their own, as llama.cpp's
// --cache-type-v is; there is none for 16 bits. queries: q8_0 rounds queries, rotated as keys are, before they meet the
// keys, as llama.cpp's flash attention on processors does (ggml-cpu.c: vec_dot_type of the type of the keys). Beside
// q4_1 and q5_1 it has q8_1, which is q8_0 with the sum of the codes.
// Complexity: O(n (d + dv)); with hadamard O(n (d + dv) log d).
// Worst-case error of a number: s / 2 in q8_0, q4_1 and q5_1; s in q4_0 and q5_0 for numbers of the sign opposite to
// the largest one, whose range ends at 7 s or 15 s; 2 s in q6_0 and q4_0[form=ik]; in iq4_nl a quarter of the largest
// |x|, as the second scale is up to an eighth from s; and the rounding of s and m to f16.
// Deviations: llama.cpp rotates the query instead of rotating keys back; the products are the same but for rounding.
// Queries are exact by default; engines differ in what they make of them (docs/eval.md).
// ik_llama.cpp adds the sums of a second scale in another order, and its q4_0 takes the negative one of two numbers of
// the same largest size.
// Where ggml stores -0 as a minimum or decodes to -0, +0 stands here.
// iq4_nl is what ggml makes of a row of a cache on processors: one try of s, no importance matrix. A model file gets
// the best of 16. ggml's CUDA kernel adds the same sums in pairs of channels, so that a scale may differ in its last
// bit of f16; its flash attention for CUDA has no iq4_nl (ggml-cuda/fattn.cu).
// Checked against: ggml of llama-cpp-python 0.3.36 (tests/ggml/blocks.cpp): bytes of blocks and decoded numbers are the
// same to the bit for 20,000 random and hostile blocks per format. In a model
// (tests/ggml/llama_caches_test.py), KL of q8_0 and q4_0 agrees to within 12 % with a graph of llama.cpp in which ggml
// rounds keys and values; with queries rounded too, this graph agrees with llama.cpp's own quantised cache as well.
#include <kvbench/core/name.hpp>
#include <kvbench/methods/quantisation/ggml_formats.hpp>
#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/quantisation/methods.hpp>
#include <kvbench/methods/stages/quantiser.hpp>

namespace kvbench::methods {
namespace {

using kernels::GroupFormat;

constexpr Index least_turn = 64;  // channels that a rotation mixes

/// A format with the bits that a number takes, its share of the scales included.
struct Format {
  GroupFormat format;
  const char* bits;
  bool fitted = false;  ///< a second scale is fitted to the codes
  bool sums = false;    ///< a group stores the sum of its codes
};
constexpr Format eight{ggml::q8_0, "8.5"}, six{ggml::q6_0, "6.5", true}, five_1{ggml::q5_1, "6"},
    five_0{ggml::q5_0, "5.5"}, four_1{ggml::q4_1, "5"}, four_0{ggml::q4_0, "4.5"}, four_ik{ggml::q4_0_ik, "4.5", true},
    four_nl{ggml::iq4_nl, "4.5", true};

struct BlockParams {
  bool hadamard = false;
  enum class Values { same, q8_0, q6_0, q5_1, q5_0, q4_1, q4_0, iq4_nl } values = Values::same;
  enum class Queries { exact, q8_0 } queries = Queries::exact;
};
void fields(ParamVisitor& visitor, BlockParams& params) {
  visitor.flag("hadamard", params.hadamard, "rotate channels before rounding, as llama.cpp does where d % 64 = 0");
  visitor.choice("values", params.values, {"same", "q8_0", "q6_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"},
                 "format of the values; same: that of the keys");
  visitor.choice("queries", params.queries, {"exact", "q8_0"},
                 "format in which queries meet the keys; q8_0: as in llama.cpp's flash attention on processors");
}
struct Q8Params : BlockParams {
  enum class Round { even, away } round = Round::even;
  enum class Form { ggml, kv } form = Form::ggml;
};
void fields(ParamVisitor& visitor, Q8Params& params) {
  fields(visitor, static_cast<BlockParams&>(params));
  visitor.choice("round", params.round, {"even", "away"}, "where ties of codes go");
  visitor.choice("form", params.form, {"ggml", "kv"},
                 "of keys; kv: q8_KV of ik_llama.cpp, one scale for a key in fp32");
}
void check(const Q8Params& params) {
  if (params.form == Q8Params::Form::kv && params.round == Q8Params::Round::away)
    throw Error("parameter 'round': keys of form=kv round ties to even; leave one of the two out");
}

struct Q4Params : BlockParams {
  enum class Form { ggml, ik } form = Form::ggml;
};
void fields(ParamVisitor& visitor, Q4Params& params) {
  fields(visitor, static_cast<BlockParams&>(params));
  visitor.choice("form", params.form, {"ggml", "ik"}, "codes and scales; ik: as ik_llama.cpp makes them");
}

Index rotation_of_keys(Index d) {
  Index turn = least_turn;
  while (d % (2 * turn) == 0) turn *= 2;
  return turn;
}

Format values_of(const Format& keys, const BlockParams& params) {
  constexpr Format others[] = {eight, six, five_1, five_0, four_1, four_0, four_nl};
  if (params.values == BlockParams::Values::same) return keys;
  return others[static_cast<std::size_t>(params.values) - 1];
}

std::shared_ptr<const Codebook> levels_of(const Format& format) {
  if (!format.fitted) return nullptr;
  return format.format.grid == kernels::Grid::codebook ? ggml::iq4_nl_codebook()
                                                       : ggml::steps_codebook(format.format.bits);
}

Codecs codecs_of(const HeadPrompt& head, const Format& keys, const Format& values, const BlockParams& params) {
  const auto codec = [&](const Format& format, Index turn) {
    return std::make_shared<GroupCodec>(GroupCodecSettings{.format = format.format,
                                                           .codebook = levels_of(format),
                                                           .encode_with_stored = false,
                                                           .fitted = format.fitted,
                                                           .sums = format.sums,
                                                           .hadamard = params.hadamard ? turn : 0});
  };
  const Index turn = rotation_of_keys(head.keys.cols());
  return {codec(keys, turn), codec(values, least_turn),
          params.queries == BlockParams::Queries::q8_0 ? codec(eight, turn) : nullptr};
}

template <const Format& keys>
std::vector<std::string> block_level(const BlockParams& params) {
  const Format values = values_of(keys, params);
  if (params.values == BlockParams::Values::same) return {fmt::format("{} bits", keys.bits)};
  return {fmt::format("{}/{} bits", keys.bits, values.bits)};
}
template <const Format& keys>
Codecs block_codecs(const HeadPrompt& head, const BlockParams& params, std::size_t, std::uint32_t, Backend&) {
  return codecs_of(head, keys, values_of(keys, params), params);
}
std::vector<std::string> q8_0_level(const Q8Params& params) {
  if (params.form == Q8Params::Form::ggml) return block_level<eight>(params);
  return {fmt::format("8/{} bits", values_of(eight, params).bits)};
}
Codecs q8_0_codecs(const HeadPrompt& head, const Q8Params& params, std::size_t, std::uint32_t, Backend&) {
  const Format blocks{params.round == Q8Params::Round::even ? ggml::q8_0 : ggml::q8_0_reference, eight.bits};
  const Format key{.format = row_of_int8(head.keys.cols()), .bits = "8", .sums = true};
  return codecs_of(head, params.form == Q8Params::Form::kv ? key : blocks, values_of(blocks, params), params);
}
std::vector<std::string> q4_0_level(const Q4Params& params) { return block_level<four_0>(params); }
Codecs q4_0_codecs(const HeadPrompt& head, const Q4Params& params, std::size_t, std::uint32_t, Backend&) {
  const Format& keys = params.form == Q4Params::Form::ggml ? four_0 : four_ik;
  return codecs_of(head, keys, values_of(keys, params), params);
}

template <class P>
ChannelBlock block_of(const Params& params) {
  if (params.as<P>().hadamard) return {least_turn, "a rotation of llama.cpp"};
  return {ggml::block_channels, "a block of ggml"};
}

/// A rotation of keys is not that of values.
template <class P>
Index block_rule(const Params& params) {
  const P& own = params.as<P>();
  if constexpr (std::is_same_v<P, Q8Params>) {
    if (own.form == Q8Params::Form::kv) return 0;
  }
  return own.hadamard || own.values != BlockParams::Values::same ? 0 : ggml::block_channels;
}

template <class P>
MethodInfo row(const char* name, const Format& format, Engine engine = Engine::llama_cpp) {
  return {.name = name,
          .paper = fmt::format("{}, ggml-quants.c", name_of(engine)),
          .summary = fmt::format("all tokens in ggml's blocks of 32 channels, {} bits a number", format.bits),
          .notes = "llama.cpp sets hadamard where the head dimension is a multiple of 64 (#21038).",
          .complexity = {.compress = {"O(n (d + dv) log d)"}},
          .engine = engine,
          .variants = {{{"hadamard", "true"}}},
          .block = block_of<P>,
          .one_rule = block_rule<P>};
}

/// The format's own name as that of its values is the default, not another configuration.
MethodInfo with_own_values(MethodInfo info) {
  info.bind = [bind = std::move(info.bind), own = info.name](std::span<const Assignment> settings) {
    std::vector<Assignment> others(settings.begin(), settings.end());
    std::erase_if(others, [&](const Assignment& one) { return one.name == "values" && same_name(one.value, own); });
    return bind(others);
  };
  return info;
}

template <const Format& format>
MethodInfo block_method(const char* name) {
  return with_own_values(
      quantiser<BlockParams>(row<BlockParams>(name, format), block_level<format>, block_codecs<format>, Encodes::each));
}

}  // namespace

std::shared_ptr<const Codebook> ggml::iq4_nl_codebook() {
  static const auto book = [] {
    Codebook levels{{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}, {}};
    for (std::size_t k = 1; k < levels.levels.size(); ++k)
      levels.midpoints.push_back((levels.levels[k - 1] + levels.levels[k]) / 2);
    return std::make_shared<const Codebook>(std::move(levels));
  }();
  return book;
}

std::shared_ptr<const Codebook> ggml::steps_codebook(int bits) {
  const int zero = 1 << (bits - 1);
  const auto steps = std::make_shared<Codebook>();
  for (int level = -zero; level < zero; ++level) steps->levels.push_back(static_cast<float>(level));
  return steps;
}

MethodInfo q8_0_method() {
  return with_own_values(quantiser<Q8Params>(row<Q8Params>("q8_0", eight), q8_0_level, q8_0_codecs, Encodes::each));
}
MethodInfo q6_0_method() {
  return with_own_values(quantiser<BlockParams>(row<BlockParams>("q6_0", six, Engine::ik_llama_cpp), block_level<six>,
                                                block_codecs<six>, Encodes::each));
}
MethodInfo q5_1_method() { return block_method<five_1>("q5_1"); }
MethodInfo q5_0_method() { return block_method<five_0>("q5_0"); }
MethodInfo q4_1_method() { return block_method<four_1>("q4_1"); }
MethodInfo q4_0_method() {
  return with_own_values(quantiser<Q4Params>(row<Q4Params>("q4_0", four_0), q4_0_level, q4_0_codecs, Encodes::each));
}
MethodInfo iq4_nl_method() { return block_method<four_nl>("iq4_nl"); }

}  // namespace kvbench::methods
