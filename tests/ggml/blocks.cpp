// SPDX-License-Identifier: Apache-2.0
// The bytes that ggml's own functions make of blocks, and the numbers that they read from them, against the operations
// of kernels/codes.hpp and the methods. ggml's reference functions are compiled without contraction; of the library for
// this processor only quantize_row_q8_0 is code of its own, the others call the reference.
//
// Beyond what a format defines: where the inverse of a scale is not finite, ggml converts infinities or NaN to
// integers, which C leaves undefined. The codes of such blocks are not compared (at most 134 of 20,366); their decoded
// numbers are, unless the scale itself is not finite (2 blocks of q4_1 and q5_1). Nor are the codes of iq4_nl where all
// numbers are below 1e-15 (519 blocks), of which ggml writes the scale 0 and codes that it has not set. The sign of a
// zero is not compared: kvbench stores no minimum of -0, and decodes to +0.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <kvbench/kernels/half.hpp>
#include <kvbench/methods/quantisation/ggml_formats.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/testing/head.hpp>

#include "numbers.hpp"

using namespace kvbench;
using kernels::GroupFormat;
using methods::Assignment;

namespace {

constexpr std::size_t width = 32;
using Bytes = std::vector<std::uint8_t>;

struct Case {
  const char* name;
  ggml_type type;
  GroupFormat format;
  ggml_from_float_t encode;
  std::vector<Assignment> settings;  ///< of the method of this name
};

std::vector<Case> cases() {
  const auto reference = [](ggml_type type) { return ggml_get_type_traits(type)->from_float_ref; };
  const auto processor = [](ggml_type type) { return ggml_get_type_traits_cpu(type)->from_float; };
  std::vector<Case> all = {
      {"q8_0", GGML_TYPE_Q8_0, methods::ggml::q8_0_reference, reference(GGML_TYPE_Q8_0), {{"round", "away"}}},
#ifdef __x86_64__
      {"q8_0", GGML_TYPE_Q8_0, methods::ggml::q8_0, processor(GGML_TYPE_Q8_0), {}},
#endif
  };
  for (const auto& [name, type, format] : {std::tuple{"q5_1", GGML_TYPE_Q5_1, methods::ggml::q5_1},
                                           {"q5_0", GGML_TYPE_Q5_0, methods::ggml::q5_0},
                                           {"q4_0", GGML_TYPE_Q4_0, methods::ggml::q4_0},
                                           {"q4_1", GGML_TYPE_Q4_1, methods::ggml::q4_1},
                                           {"iq4_nl", GGML_TYPE_IQ4_NL, methods::ggml::iq4_nl}})
    for (const ggml_from_float_t encode : {reference(type), processor(type)})
      all.push_back({name, type, format, encode, {}});
  return all;
}

/// Codes, scales and offsets in the layout of ggml, and the scales that decide which blocks are compared.
struct Coded {
  Bytes bytes;
  std::vector<float> decoded, scale, inverse;
};

void put_f16(Bytes& to, float x) {
  const std::uint16_t half = narrow_f16(x);
  to.push_back(static_cast<std::uint8_t>(half & 255));
  to.push_back(static_cast<std::uint8_t>(half >> 8));
}

void pack(Bytes& to, const GroupFormat& format, const std::uint8_t* codes, float scale, float offset) {
  put_f16(to, scale);
  if (format.scale == kernels::Scale::range) put_f16(to, offset);
  if (format.bits == 8) {
    for (std::size_t j = 0; j < width; ++j) to.push_back(static_cast<std::uint8_t>(codes[j] - 128));
    return;
  }
  if (format.bits == 5) {
    std::uint32_t fifth = 0;
    for (std::size_t j = 0; j < width; ++j) fifth |= static_cast<std::uint32_t>(codes[j] >> 4) << j;
    for (int byte = 0; byte < 4; ++byte) to.push_back(static_cast<std::uint8_t>(fifth >> 8 * byte));
  }
  for (std::size_t j = 0; j < width / 2; ++j)
    to.push_back(static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + width / 2] & 15) << 4));
}

Coded coded(Backend& b, const GroupFormat& format, const std::vector<float>& numbers) {
  const auto n = static_cast<Index>(numbers.size() / width);
  const auto each = [&] { return b.allocate<float>(n, 1); };
  const Buffer<const float> rows = b.adopt(numbers, n, static_cast<Index>(width));
  const kernels::GroupScales<Buffer> scales{rows, format, each(), each(), each(), each(), each()};
  const auto codes = b.allocate<std::uint8_t>(n, static_cast<Index>(width));
  const auto out = b.allocate<float>(n, static_cast<Index>(width));
  const bool fitted = format.grid == kernels::Grid::codebook;
  const methods::Codebook& book = *methods::ggml::iq4_nl_codebook();
  const auto levels = fitted ? b.adopt(book.levels, 16) : Buffer<float>();
  b.run(scales);
  b.run(kernels::EncodeGroups<Buffer>{.rows = rows,
                                      .format = format,
                                      .scale = scales.scale,
                                      .inverse = scales.inverse,
                                      .offset = scales.offset,
                                      .midpoints = fitted ? b.adopt(book.midpoints, 15) : Buffer<float>(),
                                      .codes = codes});
  if (fitted) b.run(kernels::FitScales<Buffer>{rows, format, codes, levels, scales.stored_scale});
  b.run(kernels::DecodeGroups<Buffer>{.codes = codes,
                                      .format = format,
                                      .scale = scales.stored_scale,
                                      .offset = scales.stored_offset,
                                      .levels = levels,
                                      .out = out});
  Coded result = {{}, b.read(out), b.read(scales.scale), b.read(scales.inverse)};
  const std::vector<std::uint8_t> all = b.read(codes);
  const std::vector<float> stored = b.read(scales.stored_scale), offset = b.read(scales.stored_offset);
  for (std::size_t i = 0; i < stored.size(); ++i) pack(result.bytes, format, &all[i * width], stored[i], offset[i]);
  return result;
}

/// The numbers as bits; all NaN and both zeros are alike.
std::vector<std::uint32_t> bits_of_all(std::vector<float> numbers) {
  std::vector<std::uint32_t> bits;
  for (const float x : numbers) bits.push_back(std::isnan(x) ? 0x7fc00000u : x == 0 ? 0 : bits_of(x));
  return bits;
}

bool codes_are_defined(const GroupFormat& format, float inverse, const float* block) {
  float largest = 0;
  for (std::size_t j = 0; j < width; ++j) largest = std::max(largest, std::fabs(block[j]));
  if (format.grid == kernels::Grid::codebook) return largest >= 1e-15f;
  if (format.quotient != GroupFormat::Quotient::inverse_of_peak) return std::isfinite(inverse);
  return largest == 0 || std::isfinite(format.peak / largest);
}

std::vector<float> decoded_by_method(const Case& one, const std::vector<float>& numbers, Backend& b) {
  const methods::MethodInfo& method = methods::find_method(one.name);
  constexpr Index d = 64;
  methods::HeadPrompt head;
  head.keys = b.adopt(numbers, static_cast<Index>(numbers.size()) / d, d);
  head.values = head.keys;
  return b.read(method.quantiser.codecs(head, method.bind(one.settings), 0, 0, b).keys->decoded(head.keys, b));
}

void compare_with_ggml(const Case& one, const std::vector<float>& numbers, Backend& b) {
  const std::size_t blocks = numbers.size() / width, size = ggml_type_size(one.type);
  Bytes expected(blocks * size);
  std::vector<float> decoded(numbers.size());
  one.encode(numbers.data(), expected.data(), static_cast<std::int64_t>(numbers.size()));
  ggml_get_type_traits(one.type)->to_float(expected.data(), decoded.data(), static_cast<std::int64_t>(decoded.size()));
  const Coded actual = coded(b, one.format, numbers);
  REQUIRE(actual.bytes.size() == expected.size());
  const auto ours = bits_of_all(actual.decoded), theirs = bits_of_all(decoded);
  CHECK(bits_of_all(decoded_by_method(one, numbers, b)) == ours);

  std::size_t compared = 0, wrong_bytes = 0, wrong_numbers = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    if (!std::isfinite(actual.scale[i])) continue;
    wrong_numbers += !std::equal(&ours[i * width], &ours[i * width] + width, &theirs[i * width]);
    if (!codes_are_defined(one.format, actual.inverse[i], &numbers[i * width])) continue;
    ++compared;
    std::uint8_t* block = &expected[i * size];
    if (one.format.scale == kernels::Scale::range && block[2] == 0 && block[3] == 0x80) {
      const float least = *std::min_element(&numbers[i * width], &numbers[i * width] + width);
      if (least == 0) block[3] = 0;  // a minimum of -0
    }
    wrong_bytes += !std::equal(block, block + size, &actual.bytes[i * size]);
  }
  CHECK(wrong_bytes == 0);
  CHECK(wrong_numbers == 0);
  CHECK(compared > (one.format.grid == kernels::Grid::codebook ? 19800 : 20000));
}

}  // namespace

TEST_CASE("blocks and decoded numbers are ggml's to the bit") {
  ggml_cpu_init();
  const std::vector<float> numbers = testing::hostile_blocks();
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_ref_backend());
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (isa_available(isa)) backends.push_back(make_cpu_backend(isa));
  for (const auto& backend : backends)
    for (const Case& one : cases()) compare_with_ggml(one, numbers, *backend);
}

TEST_CASE("the blocks have ties, so that both roundings of q8_0 are told apart") {
  const std::vector<float> numbers = testing::hostile_blocks();
  const auto b = make_ref_backend();
  CHECK(coded(*b, methods::ggml::q8_0, numbers).bytes != coded(*b, methods::ggml::q8_0_reference, numbers).bytes);
  GroupFormat even = methods::ggml::q8_0_reference;
  even.rounding = kernels::Rounding::half_even;
  CHECK(coded(*b, even, numbers).bytes != coded(*b, methods::ggml::q8_0_reference, numbers).bytes);
}
