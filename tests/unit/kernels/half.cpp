// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

std::vector<float> widen(std::vector<std::uint16_t> raw, kernels::Half format) {
  const auto ref = make_ref_backend();
  auto out = ref->allocate<float>(static_cast<Index>(raw.size()));
  ref->run(kernels::WidenHalf<Buffer>{column(*ref, std::move(raw)), format, out});
  return ref->read(out);
}

std::vector<std::uint16_t> narrow(std::vector<float> values, kernels::Half format) {
  const auto ref = make_ref_backend();
  auto out = ref->allocate<std::uint16_t>(static_cast<Index>(values.size()));
  ref->run(kernels::NarrowHalf<Buffer>{column(*ref, std::move(values)), format, out});
  return ref->read(out);
}

}  // namespace

TEST_CASE("fp16 to fp32") {
  CHECK(widen({0x0000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x03ff, 0x0400, 0x7c00, 0xfc00}, kernels::Half::f16) ==
        std::vector<float>{0, 1, -2, 65504, 0x1p-24f, 0x3ffp-24f, 0x1p-14f, kInfinity, -kInfinity});
  CHECK(std::signbit(widen({0x8000}, kernels::Half::f16)[0]));
  CHECK(std::isnan(widen({0x7e01}, kernels::Half::f16)[0]));
}

TEST_CASE("fp32 to fp16 rounds to nearest, ties to even") {
  CHECK(narrow({1, -2, 65504, 65519, 65520, -kInfinity}, kernels::Half::f16) ==
        std::vector<std::uint16_t>{0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0xfc00});
  CHECK(narrow({1 + 0x1p-11f, 1 + 0x3p-11f, 1 + 0x1.002p-11f}, kernels::Half::f16) ==
        std::vector<std::uint16_t>{0x3c00, 0x3c02, 0x3c01});
  CHECK(narrow({0x1p-24f, 0x1p-25f, 0x1.8p-24f, 0x3ff.8p-24f, -0.0f}, kernels::Half::f16) ==
        std::vector<std::uint16_t>{0x0001, 0x0000, 0x0002, 0x0400, 0x8000});
  CHECK(narrow({2 - 0x1p-12f}, kernels::Half::f16) == std::vector<std::uint16_t>{0x4000});
  CHECK((narrow({std::nanf("")}, kernels::Half::f16)[0] & 0x7e00) == 0x7e00);
}

TEST_CASE("bfloat16 both ways") {
  CHECK(widen({0x3f80, 0xc040, 0x7f80}, kernels::Half::bf16) == std::vector<float>{1, -3, kInfinity});
  CHECK(narrow({1, 1 + 0x1p-8f, 1 + 0x3p-8f, 3.4e38f, -0.0f}, kernels::Half::bf16) ==
        std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x7f80, 0x8000});
  CHECK((narrow({std::nanf("")}, kernels::Half::bf16)[0] & 0x7fc0) == 0x7fc0);
}

TEST_CASE("every finite half survives the way to fp32 and back") {
  for (const auto format : {kernels::Half::f16, kernels::Half::bf16}) {
    std::vector<std::uint16_t> raw;
    const std::uint32_t exponent = format == kernels::Half::f16 ? 0x7c00 : 0x7f80;
    for (std::uint32_t bits = 0; bits < 65536; ++bits)
      if ((bits & exponent) != exponent) raw.push_back(static_cast<std::uint16_t>(bits));
    CHECK(narrow(widen(raw, format), format) == raw);
  }
}
