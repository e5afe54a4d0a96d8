// SPDX-License-Identifier: Apache-2.0
#include <kvbench/kernels/half.hpp>

#include "literals.hpp"

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

using Floats = std::vector<float>;
using Codes = std::vector<std::uint8_t>;

struct Scales {
  Floats scale, inverse, offset, stored_scale, stored_offset;
};

kernels::GroupScales<Buffer> run_scales(const GroupFormat& format, const Buffer<const float>& rows) {
  const auto each = [&] {
    return ref().allocate<float>(format.scale_rows(rows.rows()), format.scale_cols(rows.cols()));
  };
  const kernels::GroupScales<Buffer> op{rows, format, each(), each(), each(), each(), each()};
  ref().run(op);
  return op;
}

Scales scales(const GroupFormat& format, std::initializer_list<std::initializer_list<float>> rows) {
  const auto op = run_scales(format, matrix<float>(ref(), rows));
  return {ref().read(op.scale), ref().read(op.inverse), ref().read(op.offset), ref().read(op.stored_scale),
          ref().read(op.stored_offset)};
}

/// Codes with the scales in fp32, decoded with the stored ones.
struct Coded {
  Codes codes;
  Floats decoded;
};

Coded coded(const GroupFormat& format, std::initializer_list<std::initializer_list<float>> literals,
            const Floats& levels = {}, const Floats& midpoints = {}) {
  const auto rows = matrix<float>(ref(), literals);
  const auto op = run_scales(format, rows);
  const auto codes = ref().allocate<std::uint8_t>(rows.rows(), rows.cols());
  const auto out = ref().allocate<float>(rows.rows(), rows.cols());
  ref().run(kernels::EncodeGroups<Buffer>{rows, format, op.scale, op.inverse, op.offset,
                                          column<float>(ref(), midpoints), codes});
  ref().run(kernels::DecodeGroups<Buffer>{codes, format, op.stored_scale, op.stored_offset,
                                          column<float>(ref(), levels), out});
  return {ref().read(codes), ref().read(out)};
}

/// Codes of numbers that are divided by 1.
Codes codes_of(GroupFormat format, const Floats& numbers, const Floats& midpoints = {}) {
  const auto n = std::ssize(numbers);
  format.group = n;
  const auto codes = ref().allocate<std::uint8_t>(1, n);
  ref().run(kernels::EncodeGroups<Buffer>{ref().adopt(numbers, 1, n),
                                          format,
                                          column<float>(ref(), {1}),
                                          {},
                                          column<float>(ref(), {0}),
                                          column<float>(ref(), midpoints),
                                          codes});
  return ref().read(codes);
}

/// What codes say with scale 1 and offset 0.
Floats values_of(GroupFormat format, const Codes& codes) {
  const auto n = std::ssize(codes);
  format.group = n;
  const auto out = ref().allocate<float>(1, n);
  ref().run(kernels::DecodeGroups<Buffer>{
      ref().adopt(codes, 1, n), format, column<float>(ref(), {1}), column<float>(ref(), {0}), {}, out});
  return ref().read(out);
}

const GroupFormat kE4m3{.grid = Grid::minifloat, .bits = 8};
const GroupFormat kE5m2{.grid = Grid::minifloat, .bits = 8, .exponent_bits = 5, .mantissa_bits = 2, .largest = 57344};
const GroupFormat kE2m1{.grid = Grid::minifloat, .bits = 4, .exponent_bits = 2, .mantissa_bits = 1, .largest = 6};
const float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("scales of ranges, along channels with a shorter last group") {
  const auto s = scales({.group = 2, .peak = 3}, {{1, 7, -2}, {-3, 0, 5}});
  CHECK(s.scale == Floats{2, 0, 1, 0});
  CHECK(s.inverse == Floats{0.5f, 0, 1, 0});
  CHECK(s.offset == Floats{1, -2, -3, 5});
}

TEST_CASE("scales of ranges, along tokens with a shorter last group") {
  const auto s = scales({.axis = Axis::tokens, .group = 2, .peak = 4}, {{1, 10}, {5, -10}, {8, 2}});
  CHECK(s.scale == Floats{1, 5, 0, 0});
  CHECK(s.offset == Floats{1, -10, 8, 2});
}

TEST_CASE("scales of the largest magnitude, its signed number, and the norm") {
  CHECK(scales({.scale = Scale::largest, .peak = 2}, {{3, -8, 8}}).scale == Floats{4});
  CHECK(scales({.scale = Scale::extreme, .peak = 2}, {{3, -8, 8}}).scale == Floats{4});
  CHECK(scales({.scale = Scale::extreme, .peak = 2}, {{3, 8, -8}}).scale == Floats{-4});
  CHECK(scales({.scale = Scale::norm}, {{3, 0, -4}}).scale == Floats{5});
  CHECK(scales({.scale = Scale::largest}, {{3, 8}}).offset == Floats{0});
}

TEST_CASE("scales of which the end with the larger magnitude is a whole number of steps") {
  const GroupFormat format{.scale = Scale::edge, .peak = 3, .stored = Stored::bf16, .bits = 2};
  const auto s = scales(format, {{-5, 1, 0, 1}, {5, -1, 0, 0}, {-4, -2, -4, -3}, {2, 1, 2, 1}, {0, 0, 0, 0}});
  CHECK(s.scale == Floats{5 / 3.0f, -5 / 3.0f, 4 / 3.0f, -1 / 3.0f, -1e-7f});  // 5 is 2.5 steps of (5 + 1) / 3
  CHECK(s.offset == Floats{-5, 5, -4, 2, 0});
  CHECK(s.stored_scale[2] == 1.3359375f);  // 4 / 3 in 8 bits
  CHECK(coded(format, {{-5, 1, 0, -1.25f}}).codes == Codes{0, 3, 3, 2});
}

TEST_CASE("scales with a zero point: a whole number of steps from the offset to 0, in the range of codes") {
  const GroupFormat format{.scale = Scale::zero_point, .peak = 3, .stored = Stored::f32, .bits = 2};
  const auto s = scales(format, {{-1, 2, 0.5f, 0}, {-1.5f, 1.5f, 0, 0}, {2, 5, 3, 2}, {-5, -2, -3, -4}, {0, 0, 0, 0}});
  CHECK(s.scale == Floats{1, 1, 1, 1, 1e-6f});
  CHECK(s.offset == Floats{-1, -2, 0, -3, 0});
}

TEST_CASE("inverses: of the scale, or the peak by the largest magnitude") {
  // In fp32, 127 / 11 and 1 / (3 / 127) differ.
  const GroupFormat format{.scale = Scale::largest, .peak = 127};
  GroupFormat of_peak = format;
  of_peak.quotient = Quotient::inverse_of_peak;
  CHECK(scales(format, {{11, -1}}).inverse == Floats{1 / (11 / 127.0f)});
  CHECK(scales(of_peak, {{11, -1}}).inverse == Floats{127 / 11.0f});
  CHECK(127 / 11.0f != 1 / (11 / 127.0f));
}

TEST_CASE("scales pass over NaN, and zeros among them are positive") {
  const auto s = scales({.peak = 1}, {{kNan, 2, 5, kNan}});
  CHECK(s.scale == Floats{3});
  CHECK(s.offset == Floats{2});
  CHECK_FALSE(std::signbit(scales({}, {{-0.0f, 0.0f}}).offset[0]));
}

TEST_CASE("scales that are infinite have inverse 0, and their numbers the code of 0") {
  const GroupFormat format{.scale = Scale::largest, .peak = 7, .stored = Stored::f32, .bits = 4, .zero = 8};
  CHECK(scales(format, {{1, kInfinity}}).inverse == Floats{0});
  CHECK(coded(format, {{1, -kInfinity}}).codes == Codes{8, 8});
  CHECK(scales({.peak = 1}, {{-3e38f, 3e38f}}).inverse == Floats{0});
}

TEST_CASE("stored scales and offsets: f16 with ties to even, infinite beyond 65504") {
  const auto stored = [](float x) { return scales({.group = 1, .scale = Scale::norm}, {{x}}).stored_scale[0]; };
  CHECK(stored(1 + 0x1p-11f) == 1);                // tie, to even
  CHECK(stored(1 + 3 * 0x1p-11f) == 1 + 0x1p-9f);  // tie, to even
  CHECK(stored(3 * 0x1p-25f) == 0x1p-23f);         // tie between subnormals
  CHECK(stored(65519) == 65504);
  CHECK(stored(65520) == kInfinity);
  CHECK(scales({}, {{2049, 2049}}).stored_offset == Floats{2048});
  CHECK(scales({.stored = Stored::f32}, {{2049, 2049}}).stored_offset == Floats{2049});
}

TEST_CASE("stored scales: e4m3 saturates, and has a unit") {
  GroupFormat format{.group = 1, .scale = Scale::norm, .stored = Stored::e4m3};
  CHECK(scales(format, {{17, 19, 1000, 0x1p-10f}}).stored_scale == Floats{16, 20, 448, 0});
  format.unit = 0.5f;
  CHECK(scales(format, {{17, 300}}).stored_scale == Floats{16, 224});  // 34, a tie, becomes 32, and 600 becomes 448
}

TEST_CASE("codes of steps: rounding of halves") {
  GroupFormat format{.bits = 4, .zero = 4};
  const Floats halves = {0.5f, 1.5f, -0.5f, -1.5f, 0.49999997f};
  CHECK(codes_of(format, halves) == Codes{4, 6, 4, 2, 4});
  format.rounding = Rounding::half_away;
  CHECK(codes_of(format, halves) == Codes{5, 6, 3, 2, 4});
  format.rounding = Rounding::half_up;
  CHECK(codes_of(format, halves) == Codes{5, 6, 4, 3, 5});  // 0.49999997 + 4.5 is 5 in fp32
}

TEST_CASE("codes of steps are clamped, and NaN is 0") {
  const GroupFormat format{.bits = 3, .zero = 2};
  CHECK(codes_of(format, {-3, -2, 5, 6, 1e30f, -kInfinity, kNan}) == Codes{0, 0, 7, 7, 7, 0, 2});
}

TEST_CASE("ranges: both ends are exact, and a constant group decodes to its number") {
  const auto result = coded({.group = 4, .peak = 3, .bits = 2}, {{1, 4, 2.4f, 2.6f}, {7, 7, 7, 7}});
  CHECK(result.codes == Codes{0, 3, 1, 2, 0, 0, 0, 0});
  CHECK(result.decoded == Floats{1, 4, 2, 3, 7, 7, 7, 7});
}

// d = -8 / -8 = 1; codes trunc(x + 8.5), at most 15.
TEST_CASE("q4_0 of ggml") {
  const GroupFormat format{.scale = Scale::extreme,
                           .peak = 8,
                           .quotient = Quotient::inverse,
                           .bits = 4,
                           .zero = 8,
                           .rounding = Rounding::half_up};
  const auto result = coded(format, {{-8, 8, 2.5f, -2.5f, 0}});
  CHECK(result.codes == Codes{0, 15, 11, 6, 8});
  CHECK(result.decoded == Floats{-8, 7, 3, -2, 0});
  CHECK(coded(format, {{0, -0.0f}}).codes == Codes{8, 8});
}

// The levels -2 and 3 of the numbers -1 and 2: ((1 * -2) * -1 + (4 * 3) * 2) / (1 * 4 + 4 * 9) = 26 / 40; the scale is
// stored in e4m3, of which 0.65 is between 0.625 and 0.6875. A group of zeros has none.
TEST_CASE("scales are fitted to levels by squares of the numbers") {
  const GroupFormat format{.axis = Axis::tokens, .group = 2, .stored = Stored::e4m3, .grid = Grid::codebook, .bits = 1};
  const auto codes = ref().adopt(Codes{0, 1, 1, 1}, 2, 2);
  const auto fitted = ref().allocate<float>(1, 2);
  ref().run(kernels::FitScales<Buffer>{matrix<float>(ref(), {{-1, 0}, {2, 0}}), format, codes,
                                       column<float>(ref(), {-2, 3}), fitted});
  CHECK(ref().read(fitted) == Floats{0.625f, 0});
}

TEST_CASE("groups along tokens are coded by column") {
  const auto result = coded({.axis = Axis::tokens, .group = 2, .peak = 2, .bits = 2}, {{0, 10}, {4, 14}, {3, 5}});
  CHECK(result.codes == Codes{0, 0, 2, 2, 0, 0});
  CHECK(result.decoded == Floats{0, 10, 4, 14, 3, 5});
}

TEST_CASE("minifloats: ties to even, subnormals, saturation, signs") {
  CHECK(codes_of(kE4m3, {1, -1, 17, 19, 464, 1e9f, 0x1p-9f, 0x1p-10f}) ==
        Codes{0x38, 0xb8, 0x58, 0x5a, 0x7e, 0x7e, 0x01, 0x00});
  CHECK(codes_of(kE4m3, {3 * 0x1p-10f, 0x1.ep-7f, -0.0f, kNan}) == Codes{0x02, 0x08, 0x80, 0x00});
  CHECK(codes_of(kE5m2, {1, 1e9f, 0x1p-16f, 0x1p-17f}) == Codes{0x3c, 0x7b, 0x01, 0x00});
  CHECK(codes_of(kE2m1, {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 5, -7, kInfinity}) == Codes{0, 2, 2, 4, 4, 6, 15, 7});
}

TEST_CASE("minifloats: values of codes") {
  CHECK(values_of(kE4m3, {0x00, 0x01, 0x08, 0x38, 0xb9, 0x7e}) == Floats{0, 0x1p-9f, 0x1p-6f, 1, -1.125f, 448});
  CHECK(values_of(kE5m2, {0x01, 0x3c, 0x7b}) == Floats{0x1p-16f, 1, 57344});
  CHECK(values_of(kE2m1, {0, 1, 2, 3, 4, 5, 6, 7}) == Floats{0, 0.5f, 1, 1.5f, 2, 3, 4, 6});
}

TEST_CASE("a codebook: the number of midpoints up to y") {
  CHECK(codes_of({.grid = Grid::codebook, .bits = 2}, {-2, -1, 0, 0.5f, 1, 9}, {-1, 0, 1}) == Codes{0, 1, 2, 2, 3, 3});
}

// |x| = 5: y = 0.6, -0.8; levels 0.5 and -0.5, whose norm is sqrt(1/2).
TEST_CASE("a codebook of unit norm decodes to the norm of the group") {
  GroupFormat format{.scale = Scale::norm, .grid = Grid::codebook, .bits = 1};
  const auto plain = coded(format, {{3, -4}}, {-0.5f, 0.5f}, {0});
  CHECK(plain.codes == Codes{1, 0});
  CHECK(plain.decoded == Floats{2.5f, -2.5f});
  format.unit_norm = true;
  check_near(coded(format, {{3, -4}}, {-0.5f, 0.5f}, {0}).decoded, {std::sqrt(12.5f), -std::sqrt(12.5f)});
  CHECK(coded(format, {{3, -4}}, {0, 0}, {0}).decoded == Floats{0, 0});
}

TEST_CASE("the Hadamard transform of unit vectors is the signed matrix, block by block") {
  const auto out = ref().allocate<float>(2, 8);
  const auto rows = matrix<float>(ref(), {{0, 0, 0, 2, 0, 0, 0, 0}, {1, 2, 3, 4, 2, 0, 0, 0}});
  ref().run(kernels::HadamardRows<Buffer>{rows, 4, out});
  CHECK(ref().read(out) == Floats{1, -1, -1, 1, 0, 0, 0, 0, 5, -1, -2, 0, 1, 1, 1, 1});
}

// At distance 2 first: 1 + 1e8 and 1 + 1e8 lose the ones, and their difference is 0; at distance 1 first it were 2.
TEST_CASE("the Hadamard transform begins at the largest distance") {
  const auto out = ref().allocate<float>(1, 4);
  ref().run(kernels::HadamardRows<Buffer>{matrix<float>(ref(), {{1, -1, 1e8f, 1e8f}}), 4, out});
  CHECK(ref().read(out) == Floats{1e8f, 0, -1e8f, 0});
}

TEST_CASE("the Hadamard transform is its own inverse") {
  const auto once = ref().allocate<float>(1, 8), twice = ref().allocate<float>(1, 8);
  const auto rows = matrix<float>(ref(), {{3, 1, -4, 1, 5, -9, 2, 6}});
  ref().run(kernels::HadamardRows<Buffer>{rows, 8, once});
  ref().run(kernels::HadamardRows<Buffer>{once, 8, twice});
  check_near(ref().read(twice), ref().read(rows));
}

TEST_CASE("projections are inner products, summed in fp64 in the order of the columns") {
  const auto out = ref().allocate<float>(2, 2);
  const auto rows = matrix<float>(ref(), {{1, 2, 3}, {1e20f, 1, -1e20f}});
  ref().run(kernels::ProjectRows<Buffer>{rows, matrix<float>(ref(), {{1, 1, 1}, {1, -1, 2}}), out});
  CHECK(ref().read(out) == Floats{6, 5, 0, -1e20f});
}
