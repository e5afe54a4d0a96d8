// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "row_kinds.hpp"

using namespace kvbench;
using namespace kvbench::test;
using kernels::Axis;
using kernels::Grid;
using kernels::GroupFormat;
using kernels::Rounding;
using kernels::Scale;
using kernels::Stored;
using Quotient = GroupFormat::Quotient;

namespace {

/// All NaN are alike.
void check_bits(std::vector<float> actual, std::vector<float> expected, const char* what) {
  for (auto* values : {&actual, &expected})
    for (float& x : *values)
      if (std::isnan(x)) x = std::numeric_limits<float>::quiet_NaN();
  if (same_bits(actual, expected)) return;
  check_equivalent(actual, expected, what);
  FAIL_CHECK(what << " differ in bits");
}

struct Result {
  std::vector<float> scales[5], fitted, decoded;
  std::vector<std::uint8_t> codes;
};

std::vector<float> levels_of(int bits) {
  auto levels = Random(bits).normal(Index{1} << bits);
  std::sort(levels.begin(), levels.end());
  return levels;
}

std::vector<float> midpoints_of(const std::vector<float>& levels) {
  std::vector<float> midpoints;
  for (std::size_t k = 0; k + 1 < levels.size(); ++k) midpoints.push_back((levels[k] + levels[k + 1]) / 2);
  return midpoints;
}

Result coded(Backend& b, const GroupFormat& format, const std::vector<float>& data, Index n, Index d, bool stored) {
  const auto each = [&] { return b.allocate<float>(format.scale_rows(n), format.scale_cols(d)); };
  const Buffer<const float> rows = b.adopt(data, n, d);
  const kernels::GroupScales<Buffer> scales{rows, format, each(), each(), each(), each(), each()};
  b.run(scales);
  kernels::EncodeGroups<Buffer> encode{.rows = rows,
                                       .format = format,
                                       .scale = stored ? scales.stored_scale : scales.scale,
                                       .inverse = scales.inverse,
                                       .offset = stored ? scales.stored_offset : scales.offset,
                                       .codes = b.allocate<std::uint8_t>(n, d)};
  kernels::DecodeGroups<Buffer> decode{.codes = encode.codes,
                                       .format = format,
                                       .scale = scales.stored_scale,
                                       .offset = scales.stored_offset,
                                       .out = b.allocate<float>(n, d)};
  if (format.grid == Grid::codebook) {
    const auto levels = levels_of(format.bits);
    encode.midpoints = b.adopt(midpoints_of(levels), (Index{1} << format.bits) - 1);
    decode.levels = b.adopt(levels, Index{1} << format.bits);
  }
  b.run(encode);
  auto fitted = each();
  if (format.grid == Grid::codebook)
    b.run(kernels::FitScales<Buffer>{rows, format, encode.codes, decode.levels, fitted});
  else
    b.fill(fitted, 0.0f);
  b.run(decode);
  return {{b.read(scales.scale), b.read(scales.inverse), b.read(scales.offset), b.read(scales.stored_scale),
           b.read(scales.stored_offset)},
          b.read(fitted),
          b.read(decode.out),
          b.read(encode.codes)};
}

void check_format(const GroupFormat& format, const std::vector<float>& rows, Index n, Index d, bool stored) {
  const Result expected = coded(*make_ref_backend(), format, rows, n, d, stored);
  for_each_backend([&](Backend& b) {
    const Result actual = coded(b, format, rows, n, d, stored);
    const char* const names[] = {"scales", "inverses", "offsets", "stored scales", "stored offsets"};
    for (std::size_t k = 0; k < 5; ++k) check_bits(actual.scales[k], expected.scales[k], names[k]);
    check_equivalent(actual.codes, expected.codes, "codes");
    check_bits(actual.fitted, expected.fitted, "fitted scales");
    check_bits(actual.decoded, expected.decoded, "decoded");
  });
}

struct Named {
  const char* name;
  GroupFormat format;
};

/// Each value of each field in at least one format.
const Named formats[] = {
    {"asymmetric, 4 bits", {}},
    {"asymmetric, 2 bits, rounded up", {.peak = 3, .bits = 2, .rounding = Rounding::half_up}},
    {"q8_0", {.scale = Scale::largest, .peak = 127, .quotient = Quotient::inverse, .bits = 8, .zero = 128}},
    {"q8_0, reference",
     {.scale = Scale::largest,
      .peak = 127,
      .quotient = Quotient::inverse_of_peak,
      .bits = 8,
      .zero = 128,
      .rounding = Rounding::half_away}},
    {"q4_0",
     {.scale = Scale::extreme,
      .peak = 8,
      .quotient = Quotient::inverse,
      .bits = 4,
      .zero = 8,
      .rounding = Rounding::half_up}},
    {"asymmetric, scales of 8 bits, fp32 quotients by inverses",
     {.quotient = Quotient::inverse, .stored = Stored::e4m3, .unit = 0.37f, .rounding = Rounding::half_away}},
    {"fp8", {.scale = Scale::largest, .peak = 448, .stored = Stored::f32, .grid = Grid::minifloat, .bits = 8}},
    {"e5m2",
     {.scale = Scale::largest,
      .peak = 57344,
      .quotient = Quotient::inverse_of_peak,
      .stored = Stored::f32,
      .unit = 3,
      .grid = Grid::minifloat,
      .bits = 8,
      .exponent_bits = 5,
      .mantissa_bits = 2,
      .largest = 57344}},
    {"nvfp4",
     {.group = 16,
      .scale = Scale::largest,
      .peak = 6,
      .stored = Stored::e4m3,
      .unit = 1.0f / 512,
      .grid = Grid::minifloat,
      .exponent_bits = 2,
      .mantissa_bits = 1,
      .largest = 6}},
    {"mlx",
     {.group = 64,
      .scale = Scale::edge,
      .peak = 255,
      .stored = Stored::bf16,
      .bits = 8,
      .rounding = Rounding::half_away}},
    {"zero point, vLLM",
     {.scale = Scale::zero_point,
      .quotient = Quotient::inverse,
      .stored = Stored::f32,
      .rounding = Rounding::half_away}},
    {"codebook", {.scale = Scale::norm, .quotient = Quotient::inverse, .grid = Grid::codebook, .bits = 3}},
    {"codebook of unit norm", {.scale = Scale::norm, .grid = Grid::codebook, .bits = 4, .unit_norm = true}},
    {"codebook, 8 bits", {.scale = Scale::largest, .peak = 2, .grid = Grid::codebook, .bits = 8}},
    {"signs", {.scale = Scale::norm, .grid = Grid::codebook, .bits = 1, .unit_norm = true}}};

/// As many numbers as a group has: fewer than a vector, not a multiple of one, the usual, more than there are.
constexpr Index kGroups[] = {1, 5, 32, 37, 200};

template <class Op>
void check_rows(const std::vector<float>& expected, Op run, const char* what) {
  for_each_backend([&](Backend& b) { check_bits(run(b), expected, what); });
}

}  // namespace

TEST_CASE("scales, codes and decoded rows have the bits of the reference") {
  for (const Named& named : formats)
    for (const auto axis : {Axis::channels, Axis::tokens})
      for (const Index group : kGroups) {
        GroupFormat format = named.format;
        format.axis = axis;
        format.group = group;
        CAPTURE(named.name);
        CAPTURE(group);
        for (const Kind& kind : kinds) {
          CAPTURE(kind.name);
          check_format(format, kind.rows(67, 43, 9), 67, 43, group % 2 == 0);
        }
      }
}

TEST_CASE("rows of any number of columns have the bits of the reference") {
  for (const Named& named : formats)
    for (const Index d : {0, 1, 3, 8, 16, 17, 31, 64, 128})
      for (const auto axis : {Axis::channels, Axis::tokens}) {
        GroupFormat format = named.format;
        format.axis = axis;
        CAPTURE(named.name);
        CAPTURE(d);
        for (const Index n : {0, 1, 33}) check_format(format, Random(11).normal(n * d), n, d, true);
      }
}

// Every f16 scale between its neighbours: halves, quarters and their neighbours are ties and beside them.
TEST_CASE("stored scales and minifloats round as the reference, at and beside ties") {
  std::vector<float> rows;
  for (int exponent = -40; exponent <= 20; ++exponent)
    for (int step = 0; step < 32; ++step) {
      const float tie = std::ldexp(1 + static_cast<float>(step) / 32, exponent);
      for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinity)}) rows.push_back(x);
      const float half = std::ldexp(1 + static_cast<float>(64 * step + 1) / 2048, exponent);
      for (const float x : {half, std::nextafter(half, 0.0f), std::nextafter(half, kInfinity)}) rows.push_back(-x);
    }
  const auto n = std::ssize(rows);
  for (const Named& named : formats)
    for (const auto stored : {Stored::f16, Stored::e4m3}) {
      GroupFormat format = named.format;
      format.group = 1;
      format.stored = stored;
      CAPTURE(named.name);
      check_format(format, rows, n, 1, false);  // each number has a scale of its own
      // and with the scale 1, which the first number of a group of all numbers fixes
      auto of_one_scale = rows;
      for (float& x : of_one_scale) x = std::clamp(x, -format.peak, format.peak);
      of_one_scale[0] = format.peak;
      format.axis = Axis::tokens;
      format.group = n;
      check_format(format, of_one_scale, n, 1, false);
    }
}

TEST_CASE("Hadamard transforms have the bits of the reference") {
  for (const Index block : {1, 2, 4, 8, 16, 32, 64, 128})
    for (const Index blocks : {0, 1, 3})
      for (const Kind& kind : kinds) {
        CAPTURE(block);
        CAPTURE(kind.name);
        const Index d = block * blocks;
        if (d == 0) continue;
        const auto rows = kind.rows(51, d, 3);
        const auto transformed = [&](Backend& b) {
          auto out = b.allocate<float>(51, d);
          b.run(kernels::HadamardRows<Buffer>{b.adopt(rows, 51, d), block, out});
          return b.read(out);
        };
        check_rows(transformed(*make_ref_backend()), transformed, "transformed");
      }
}

TEST_CASE("projections have the bits of the reference") {
  for (const Kind& kind : kinds)
    for (const Index d : {1, 7, 64})
      for (const Index m : {0, 1, 5, 16, 37, 130})
        for (const Index n : {0, 1, 4, 51}) {
          CAPTURE(kind.name);
          CAPTURE(m);
          const auto rows = kind.rows(n, d, 3);
          const auto matrix = kind.rows(m, d, 4);
          const auto projected = [&](Backend& b) {
            auto out = b.allocate<float>(n, m);
            b.run(kernels::ProjectRows<Buffer>{b.adopt(rows, n, d), b.adopt(matrix, m, d), out});
            return b.read(out);
          };
          check_rows(projected(*make_ref_backend()), projected, "projected");
        }
}
