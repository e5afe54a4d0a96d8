// SPDX-License-Identifier: Apache-2.0
#include <kvbench/kernels/half.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace kvbench;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("fp16 to fp32") {
  CHECK(widen_f16(0x0000) == 0);
  CHECK(widen_f16(0x3c00) == 1);
  CHECK(widen_f16(0xc000) == -2);
  CHECK(widen_f16(0x7bff) == 65504);
  CHECK(widen_f16(0x0001) == 0x1p-24f);
  CHECK(widen_f16(0x03ff) == 0x3ffp-24f);
  CHECK(widen_f16(0x0400) == 0x1p-14f);
  CHECK(widen_f16(0x7c00) == kInfinity);
  CHECK(widen_f16(0xfc00) == -kInfinity);
  CHECK(std::signbit(widen_f16(0x8000)));
  CHECK(std::isnan(widen_f16(0x7e01)));
}

TEST_CASE("fp32 to fp16 rounds to nearest, ties to even") {
  CHECK(narrow_f16(1) == 0x3c00);
  CHECK(narrow_f16(-2) == 0xc000);
  CHECK(narrow_f16(65504) == 0x7bff);
  CHECK(narrow_f16(65519) == 0x7bff);
  CHECK(narrow_f16(65520) == 0x7c00);
  CHECK(narrow_f16(-kInfinity) == 0xfc00);
  CHECK(narrow_f16(1 + 0x1p-11f) == 0x3c00);
  CHECK(narrow_f16(1 + 0x3p-11f) == 0x3c02);
  CHECK(narrow_f16(1 + 0x1.002p-11f) == 0x3c01);
  CHECK(narrow_f16(2 - 0x1p-12f) == 0x4000);
  // Below the smallest normal number, halves are 2^-24 apart.
  CHECK(narrow_f16(0x1p-24f) == 0x0001);
  CHECK(narrow_f16(0x1p-25f) == 0x0000);
  CHECK(narrow_f16(0x1.8p-24f) == 0x0002);
  CHECK(narrow_f16(0x3ff.8p-24f) == 0x0400);
  CHECK(narrow_f16(-0.0f) == 0x8000);
  CHECK((narrow_f16(std::nanf("")) & 0x7e00) == 0x7e00);
}

TEST_CASE("bfloat16 to fp32 and back") {
  CHECK(widen_bf16(0x3f80) == 1);
  CHECK(widen_bf16(0xc040) == -3);
  CHECK(widen_bf16(0x7f80) == kInfinity);
  CHECK(narrow_bf16(1) == 0x3f80);
  CHECK(narrow_bf16(1 + 0x1p-8f) == 0x3f80);
  CHECK(narrow_bf16(1 + 0x3p-8f) == 0x3f82);
  CHECK(narrow_bf16(3.4e38f) == 0x7f80);
  CHECK(narrow_bf16(-0.0f) == 0x8000);
  CHECK((narrow_bf16(std::nanf("")) & 0x7fc0) == 0x7fc0);
}

TEST_CASE("every finite half is the same after conversion to fp32 and back") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7c00) != 0x7c00) REQUIRE(narrow_f16(widen_f16(half)) == half);
    if ((bits & 0x7f80) != 0x7f80) REQUIRE(narrow_bf16(widen_bf16(half)) == half);
  }
}

namespace {

/// Whether no half is nearer to x, and none that is as near is even where this one is odd.
bool is_nearest(float x, std::uint16_t half, float (*widen)(std::uint16_t)) {
  const auto distance = [&](std::uint32_t other) {
    return std::fabs(static_cast<double>(widen(static_cast<std::uint16_t>(other))) - static_cast<double>(x));
  };
  const double own = distance(half), next = distance(half + 1u);
  const double previous = (half & 0x7fff) == 0 ? kInfinity : distance(half - 1u);
  const bool even = (half & 1) == 0;
  return own <= next && own <= previous && (even || (own < next && own < previous));
}

}  // namespace

TEST_CASE("fp32 becomes the nearest half of its sign, the even one on ties, at every size") {
  std::vector<float> values;
  for (std::uint32_t step = 0; step < 3000; ++step) {
    const auto x = static_cast<float>(step);
    values.insert(values.end(), {x * 0x1p-26f, -x * 0x1p-26f, 1 + x * 0x1p-13f, -1 - x * 0x1p-20f, 30000 + x});
    values.push_back(std::ldexp(1 + x / 4096, static_cast<int>(step % 55) - 40));
  }
  for (const float x : values) {
    CAPTURE(x);
    REQUIRE(std::signbit(widen_f16(narrow_f16(x))) == std::signbit(x));
    REQUIRE(is_nearest(x, narrow_f16(x), widen_f16));
    REQUIRE(is_nearest(x, narrow_bf16(x), widen_bf16));
  }
}
