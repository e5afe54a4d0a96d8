// SPDX-License-Identifier: Apache-2.0
#include "coded_rows.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>

#include <support/rounding.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// A block of 32 channels that begins with these numbers; the others are zeros.
std::vector<float> block_of(std::vector<float> first) {
  first.resize(32, 0.0f);
  return first;
}

/// iq4_nl of a block, one number after the other.
std::vector<float> iq4_nl_of(const std::vector<float>& block) {
  constexpr float levels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  float extreme = 0;
  for (const float x : block)
    if (std::abs(x) > std::abs(extreme)) extreme = x;
  if (extreme == 0) return block;
  const float inverse = 1 / (extreme / -127);
  std::vector<float> nearest;
  float above = 0, below = 0;
  for (const float x : block) {
    float best = levels[0];
    for (const float level : levels)
      if (std::abs(x * inverse - level) <= std::abs(x * inverse - best)) best = level;
    nearest.push_back(best);
    above += x * x * best * x;
    below += x * x * best * best;
  }
  const auto scale = static_cast<float>(static_cast<_Float16>(above / below));
  for (float& x : nearest) x *= scale;
  return nearest;
}

}  // namespace

// The largest number is 127, so that s = 1: 2.5 is a tie, which goes to 2 in q8_0 as llama.cpp runs, and to 3 in its
// reference function.
TEST_CASE("q8_0 divides by 1/127 of the largest number") {
  const std::vector<float> row = block_of({127, 2.5f, -2.5f, 0.4f, -126.6f});
  CHECK(rounded_keys("q8_0", {}, row) == block_of({127, 2, -2, 0, -127}));
  CHECK(rounded_keys("q8_0", {{"round", "away"}}, row) == block_of({127, 3, -3, 0, -127}));
}

// One scale for 64 channels, s = 1: the second half of the row is rounded to whole numbers, where blocks of 32 have a
// step of 1/127 there.
TEST_CASE("q8_0[form=kv] has one scale for a key, and blocks for a value") {
  std::vector<float> row = block_of({127, 2.5f, -3.5f}), rounded = block_of({127, 2, -4});
  row.resize(64), rounded.resize(64);
  row[32] = 1, row[33] = 0.4f, row[34] = 0.6f;
  rounded[32] = 1, rounded[34] = 1;
  CHECK(rounded_keys("q8_0", {{"form", "kv"}}, row) == rounded);
  CHECK(rounded_keys("q8_0", {}, row) != rounded);
  const auto codec = key_codecs("q8_0", {{"form", "kv"}}, {coded_prompt({}, 64)}).front();
  CHECK(bytes_of(codec->footprint(10, 64)) == 10 * (64 + 8));
  CHECK_THROWS_WITH(find_method("q8_0").bind(std::vector<Assignment>{{"form", "kv"}, {"round", "away"}}),
                    doctest::Contains("leave one of the two out"));
}

// The number of largest size is -8, so that s = 1 and codes reach from -8 to 7: 7.6 is beyond the range. Ties go up:
// 2.5 + 8.5 is 11, 11 - 8 is 3; -2.5 + 8.5 is 6, 6 - 8 is -2.
TEST_CASE("q4_0 has eight steps on the side of the largest number, and seven on the other") {
  CHECK(rounded_keys("q4_0", {}, block_of({-8, 7.6f, 2.5f, -2.5f, 0.3f})) == block_of({-8, 7, 3, -2, 0}));
  CHECK(rounded_keys("q4_0", {}, block_of({8, -7.6f, 2.5f})) == block_of({8, -7, 2}));  // s = -1
}

// The same with -16, so that codes reach from -16 to 15.
TEST_CASE("q5_0 has sixteen steps on the side of the largest number, and fifteen on the other") {
  CHECK(rounded_keys("q5_0", {}, block_of({-16, 15.6f, 2.5f, -2.5f, 0.3f})) == block_of({-16, 15, 3, -2, 0}));
}

// s = 1. The codes -32, 31 and 3 (2.5 + 32.5 is 35) are fitted by 2026812.3 / 2008248.4 = 1.00924, in f16 1033 / 1024;
// those of -8, 7, 2 and -2 (ties to even) by 7231.332 / 6976.24 = 1.03657, in f16 1061 / 1024.
TEST_CASE("q6_0 and q4_0 of ik_llama.cpp fit a second scale to their codes") {
  constexpr float six = 1033.0f / 1024, four = 1061.0f / 1024;
  CHECK(rounded_keys("q6_0", {}, block_of({-32, 31, 3})) == block_of({-32, 31, 3}));
  CHECK(rounded_keys("q6_0", {}, block_of({-32, 31.6f, 2.5f})) == block_of({-32 * six, 31 * six, 3 * six}));
  CHECK(rounded_keys("q4_0", {{"form", "ik"}}, block_of({-8, 7.6f, 2.5f, -2.5f})) ==
        block_of({-8 * four, 7 * four, 2 * four, -2 * four}));
  CHECK(rounded_keys("q6_0", {}, block_of({})) == block_of({}));
}

// Numbers from 0 to 15, then to 31: s = 1. 2.5 + 0.5 is 3.
TEST_CASE("q4_1 and q5_1 have 15 and 31 steps from the minimum") {
  CHECK(rounded_keys("q4_1", {}, block_of({15, 2.5f, 14.4f})) == block_of({15, 3, 14}));
  CHECK(rounded_keys("q5_1", {}, block_of({31, 2.5f, 30.4f})) == block_of({31, 3, 30}));
}

// Numbers of levels as they are: s = 1 fits best. Zeros become the level 1. 7, halfway between 1 and 13, goes up, as
// -4.5 between -10 and 1 does; neither weighs enough to move the scale by half of 2^-11.
TEST_CASE("iq4_nl has 16 uneven levels, none of them 0") {
  std::vector<float> expected(32, 1.0f);
  const auto starts_with = [&](std::vector<float> first) {
    std::ranges::copy(first, expected.begin());
    return expected;
  };
  CHECK(rounded_keys("iq4_nl", {}, block_of({-127, 25, -104, 13})) == starts_with({-127, 25, -104, 13}));
  CHECK(rounded_keys("iq4_nl", {}, block_of({-127, 7, -4.5f, 25.4f})) == starts_with({-127, 13, 1, 25}));
  CHECK(rounded_keys("iq4_nl", {}, block_of({})) == block_of({}));
}

// Of -127 and 127 the first decides that s = 1, so that 127 has the level 113. Both weigh alike: the scale is
// 127 (127 + 113) / (127^2 + 113^2) = 30480 / 28898 = 1.05474, in f16 1.0546875.
TEST_CASE("iq4_nl fits its scale to the levels of all numbers") {
  std::vector<float> expected(32, 1.0546875f);
  expected[0] = -127 * 1.0546875f, expected[1] = 113 * 1.0546875f;
  CHECK(rounded_keys("iq4_nl", {}, block_of({-127, 127})) == expected);
  for (float& x : expected) x = -x;
  CHECK(rounded_keys("iq4_nl", {}, block_of({127, -127})) == expected);  // s = -1
}

TEST_CASE("iq4_nl is what its rule gives number by number") {
  for (const std::vector<float>& block : hostile_blocks(32))
    CHECK(rounded_keys("iq4_nl", {}, block) == iq4_nl_of(block));
}

TEST_CASE("formats of ggml stay within their worst cases, and do not change the order of numbers") {
  const std::vector<std::pair<const char*, double>> formats = {
      // worst case in ranges of the block
      {"q8_0", 1.0 / 127 / 2}, {"q6_0", 1.0 / 16}, {"q5_1", 1.0 / 31 / 2}, {"q4_1", 1.0 / 15 / 2},
      {"q5_0", 1.0 / 16},      {"q4_0", 1.0 / 8},  {"iq4_nl", 1.0 / 4}};
  for (const auto& format : formats) {
    const std::string name = format.first;
    const double worst = format.second;
    CAPTURE(name);
    for (std::vector<float> row : hostile_blocks(32)) {
      std::ranges::sort(row);
      const std::vector<float> got = rounded_keys(name, {}, row);
      CHECK(std::ranges::is_sorted(got));
      const double most = std::max(std::abs(row.front()), std::abs(row.back()));
      const bool ranged = name.ends_with("_1");
      const double range = ranged ? double{row.back()} - row.front() : most;
      for (std::size_t i = 0; i < row.size(); ++i)
        CHECK(std::abs(double{got[i]} - row[i]) <= worst * range + (range + most) * 0x1p-11 + 0x1p-18);
    }
  }
}

TEST_CASE("values may have a format of their own") {
  const std::vector<float> row = block_of({-8, 7.6f, 2.5f});
  const RoundedRows mixed = rounded_rows("q8_0", {{"values", "q4_0"}}, row);
  CHECK(mixed.keys == rounded_keys("q8_0", {}, row));
  CHECK(mixed.values == block_of({-8, 7, 3}));
  CHECK(mixed.keys != mixed.values);
  CHECK(rounded_rows("q8_0", {{"values", "iq4_nl"}}, row).values == rounded_keys("iq4_nl", {}, row));
  CHECK(rounded_rows("q4_0", {{"values", "same"}}, row).values == block_of({-8, 7, 3}));
}

// s = -1/8, of which 0.05 is less than a half. Rotated, both numbers are in all channels: (1 + 0.05) / 8 or
// (1 - 0.05) / 8, which are stored apart.
TEST_CASE("hadamard keeps a small channel beside a large one") {
  std::vector<float> row(64, 0.0f);
  row[5] = 1, row[6] = 0.05f;
  CHECK(rounded_keys("q4_0", {}, row)[6] == 0);
  const std::vector<float> turned = rounded_keys("q4_0", {{"hadamard", "true"}}, row);
  CHECK(turned[5] == doctest::Approx(1).epsilon(0.05));
  CHECK(turned[6] == doctest::Approx(0.05).epsilon(0.5));
}

TEST_CASE("blocks of ggml need whole blocks of channels") {
  CHECK_THROWS_WITH_AS(rounded_keys("q8_0", {}, std::vector<float>(48, 1.0f)), doctest::Contains("multiple of the 32"),
                       Unavailable);
  CHECK_THROWS_WITH_AS(rounded_keys("q8_0", {{"hadamard", "true"}}, std::vector<float>(32, 1.0f)),
                       doctest::Contains("multiple of the 64"), Unavailable);
}

// Two tokens, and a query whose numbers between the steps of q8_0 decide: rounded, it is (127, 2, -2, 0 ...), so that
// the logits are 2 and -2 where they would be 2.5 and -2.5. q8_0 has 127 and 0 exactly, as keys and values are.
TEST_CASE("queries=q8_0 rounds the queries that meet the keys, and nothing else") {
  std::vector<float> rows(64, 0.0f), query = block_of({127, 2.5f, -2.5f});
  rows[1] = 127, rows[32 + 2] = 127;
  HeadData head = head_of(rows, 2);
  head.scale = 1.0f / 127;
  head.values = block_of({127}), head.values.resize(64, 0.0f);
  head.queries = std::vector<float>(32, 0.0f), head.queries.insert(head.queries.end(), query.begin(), query.end());
  const auto weight_of_first = [&](const std::vector<Assignment>& settings) {
    const MethodInfo& info = find_method("q8_0");
    const auto cache = info.prepare_head(prompt_of(head, ref()), info.bind(settings), ref())(2, 0);
    const QueryBlock last = query_block(head, 1, 2, 2, ref());
    return answer(head, last, cache->entries(last), ref()).front() / 127;
  };
  CHECK(weight_of_first({}) == doctest::Approx(1 / (1 + std::exp(-5.0))));
  CHECK(weight_of_first({{"queries", "q8_0"}}) == doctest::Approx(1 / (1 + std::exp(-4.0))));
}
