// SPDX-License-Identifier: Apache-2.0
#include "coded_rows.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Floats coded(const Floats& prompt, const Floats& rows, Index d = 16, const char* form = "6") {
  return decoded(*key_codecs("nvfp4", {{"form", form}}, {coded_prompt(prompt, d)}).front(), rows, d);
}

/// One block: these numbers, then zeros.
Floats block(Floats numbers) {
  numbers.resize(16);
  return numbers;
}

}  // namespace

// g = 2688 / (448 6) = 1. The block's scale is 12 / 6 = 2: 5 / 2 and 7 / 2 are ties between 2 and 3 and between 3 and
// 4, and go to 2 and 4, whose mantissa is even; -1/4 and 3/4 to 0 and 1, -9/2 to -4, 10/2 to 4, 11/2 to 6.
TEST_CASE("nvfp4 rounds to the nearest e2m1 number of a block's scale") {
  CHECK(coded(block({-2688}), block({12, 5, 7, -0.5, 1.5, -9, 10, 11})) == block({12, 4, 8, 0, 2, -8, 8, 12}));
}

// 14 / 6 = 2.333 is stored as 2.25, e4m3 being 1/4 apart there: 14 is 6.2 scales and saturates at 6 2.25 = 13.5, and 7
// is 3.1 scales. 13 / 6 = 2.167 is stored as 2.25: 13 is 5.8 scales.
TEST_CASE("nvfp4 rounds the scale of a block to e4m3") {
  CHECK(coded(block({2688}), block({14, 7})) == block({13.5, 6.75}));
  CHECK(coded(block({2688}), block({13})) == block({13.5}));
}

// g = 1: a block of a decoded token may have a scale of 448 at most, and its numbers 2688.
TEST_CASE("nvfp4 keeps the scale of the prompt, beyond which decoded tokens saturate") {
  CHECK(coded(block({2688}), block({1e6f, -2700, 1344})) == block({2688, -2688, 1344}));
}

// 6 2^-10 has the scale 2^-10, a tie between 0 and 2^-9, the smallest number of e4m3.
TEST_CASE("nvfp4 decodes blocks with a scale of 0 to 0") {
  CHECK(coded(block({2688}), block({6 * 0x1p-10f, 1e-3f})) == block({}));
  CHECK(coded(block({2688}), block({6 * 0x1p-9f, 0x1p-9f})) == block({6 * 0x1p-9f, 0x1p-9f}));
}

// g = 1 without a prompt, as if it held 2688.
TEST_CASE("nvfp4 takes the scale 1 where the prompt is empty or 0") {
  const Floats rows = random_numbers(160, 9, 0);
  CHECK(coded({}, rows) == coded(block({2688}), rows));
  CHECK(coded(block({}), rows) == coded(block({2688}), rows));
}

TEST_CASE("nvfp4 keeps the order of numbers and the bound of its error, also of hostile rows") {
  const Floats rows = hostile_rows();
  for (const Floats& prompt : {random_numbers(160, 5, 0), rows, block({1e-30f})}) {
    const float largest_of_prompt = largest_of(prompt, 0, prompt.size()), g = largest_of_prompt / 2688;
    CAPTURE(g);
    const Floats out = coded(prompt, rows);
    check_monotonic(rows, out, 16);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const float largest = largest_of(rows, i / 16 * 16, 16), s = largest / 6;
      const float rounding = std::max(s / 17, g / 1024);
      const float bound = s <= 448 * g ? std::max(s + rounding, 6 * rounding) : std::max(448 * g, largest - 2688 * g);
      CAPTURE(rows[i]);
      CHECK(std::fabs(out[i] - rows[i]) <= bound * (1 + 1e-5f));
    }
  }
}

TEST_CASE("nvfp4 encodes what it decoded to the same numbers") {
  const Floats rows = random_numbers(16 * 200, 4, 0), out = coded(rows, rows);
  CHECK(coded(rows, out) == out);
}

// g = 1. With 12 as code 6 the scale is 2, and 9 is 4.5 scales and goes to 4: 8. With 12 as code 4 it is 3, and 9 is
// decoded exactly. In the second block 2 and 7 become 2 and 8 (3.5 scales) with scale 2, and 1.5 and 6 with scale 3:
// squared errors of 1 and 1.25.
TEST_CASE("nvfp4[form=4over6] takes the better scale of each block") {
  Floats rows = block({12, 9}), expected = rows, six = block({12, 8});
  for (const float number : block({12, 2, 7})) rows.push_back(number);
  for (Floats* out : {&expected, &six}) {
    for (const float number : block({12, 2, 8})) out->push_back(number);
  }
  CHECK(coded(block({2688}), rows, 16, "4over6") == expected);
  CHECK(coded(block({2688}), rows, 32, "4over6") == expected);
  CHECK(coded(block({2688}), rows) == six);
}

// 2688 / 4 = 672 is stored as 448, so that 2688 has code 6 with both.
TEST_CASE("nvfp4[form=4over6] has no other scale where that would be larger than e4m3 has") {
  CHECK(coded(block({2688}), block({2688, 2016}), 16, "4over6") == block({2688, 1792}));
}

TEST_CASE("nvfp4[form=4over6] has no larger squared error in any block, and a smaller one in some") {
  const Floats rows = random_numbers(16 * 200, 5, 0), six = coded(rows, rows), both = coded(rows, rows, 16, "4over6");
  int better = 0;
  for (std::size_t begin = 0; begin < rows.size(); begin += 16) {
    double of_six = 0, of_both = 0;
    for (std::size_t i = begin; i < begin + 16; ++i) {
      of_six += std::pow(static_cast<double>(six[i]) - rows[i], 2);
      of_both += std::pow(static_cast<double>(both[i]) - rows[i], 2);
    }
    CHECK(of_both <= of_six);
    better += of_both < of_six;
  }
  CHECK(better > 20);
  CHECK(better < 180);
}

// 4 bits a number and 8 a block of 16 make 4.5; g has 32.
TEST_CASE("nvfp4 stores 4.5 bits a number") {
  for (const char* form : {"6", "4over6"}) {
    const auto codec = key_codecs("nvfp4", {{"form", form}}, {coded_prompt(Floats(64), 64)}).front();
    CHECK(bytes_of(codec->footprint(100, 64)) == 100 * 64 * 4.5 / 8 + 4);
  }
}

TEST_CASE("nvfp4 refuses heads that are no multiple of a block") {
  CHECK_THROWS_AS(key_codecs("nvfp4", {}, {coded_prompt(Floats(24), 24)}), Unavailable);
}
