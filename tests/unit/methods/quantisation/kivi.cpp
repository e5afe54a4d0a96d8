// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/rounding.hpp>
#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Two channels, four tokens in groups of two: 2 bits of a range of 3 are steps of 1. Channel 0 has 0 3 | 10 13, channel
// 1 has 3 6 | 13 13, and so have the tokens 0 3, 3 6, 10 13 and 13 13.
TEST_CASE("kivi2 groups keys by tokens of a channel, and values by channels of a token") {
  const std::vector<float> rows = {0, 3, 3, 6, 10, 13, 13, 13};
  const RoundedRows got = rounded_rows("kivi2", {{"group", "2"}, {"residual", "2"}}, rows, 4);
  CHECK(got.keys == rows);  // each group of two numbers has its minimum and its maximum
  CHECK(got.values == rows);
  // Three tokens of one channel in a group: 1 is a third of the way from 0 to 3.
  const std::vector<float> three = {0, 1.4f, 3};
  CHECK(rounded_rows("kivi2", {{"group", "3"}, {"residual", "3"}}, three, 3).keys == std::vector<float>{0, 1, 3});
}

namespace {

/// One channel, whose tokens are 0 0.4 3, repeated: a group of three rounds the second of them to 0.
struct Stream {
  HeadData head;
  std::unique_ptr<CompressedCache> cache;

  Stream(Index context, Index total) {
    std::vector<float> keys;
    for (Index t = 0; t < total; ++t) keys.push_back(t % 3 == 0 ? 0.0f : t % 3 == 1 ? 0.4f : 3.0f);
    head = small_head(keys, context);
    head.values = keys;
    cache = open_cache("kivi2", {{"group", "3"}, {"residual", "6"}}, prompt_of(head, ref()), 1, 0);
  }
  /// The tokens whose numbers are rounded, while the query of token `end` - 1 is answered.
  Ids rounded(Index end, bool keys) {
    const EntryTables tables = cache->entries(query_block(head, end - 1, end, end, ref()));
    Ids ids, out;
    std::vector<float> rows;
    for (const EntryTable& table : tables) {
      for (const TokenId id : ref().read(table.ids)) ids.push_back(id);
      for (const float x : ref().read(keys ? table.own_keys : table.own_values)) rows.push_back(x);
    }
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (rows[k] != head.keys[static_cast<std::size_t>(ids[k])]) out.push_back(ids[k]);
    }
    return out;
  }
};

}  // namespace

// Of 8 tokens of the prompt, 8 mod 6 = 2 wait: 6 keys are encoded, of which 1 and 4 change. 6 keys wait at 12 tokens,
// whose query still reads them; at 13 tokens they are encoded, and 7 and 10 change.
TEST_CASE("waiting keys are encoded together, after the step that completes them") {
  Stream stream(8, 15);
  CHECK(stream.rounded(8, true) == Ids{1, 4});
  for (Index t = 8; t < 15; ++t) {
    REQUIRE(append(*stream.cache, token_block(stream.head, t, t + 1, ref())) == 1);
    CAPTURE(t);
    CHECK(stream.rounded(t + 1, true) == (t + 1 <= 12 ? Ids{1, 4} : Ids{1, 4, 7, 10}));
  }
}

TEST_CASE("a prompt of whole batches leaves no key waiting") {
  CHECK(Stream(12, 12).rounded(12, true) == Ids{1, 4, 7, 10});
  CHECK(Stream(5, 5).rounded(5, true).empty());
}

// Values are one channel per token, so that a group is a single number, which is exact: rounding cannot be seen. Two
// channels show it: the values are (0, x) with x = 0.4 in a group of three channels (0, x, 3).
TEST_CASE("one value is encoded after each step, and the last six wait") {
  std::vector<float> rows;
  for (int t = 0; t < 12; ++t) rows.insert(rows.end(), {0, 0.4f, 3});
  HeadData head = head_of(rows, 12);
  head.n = 8;
  const auto cache = open_cache("kivi2", {{"group", "3"}, {"residual", "6"}}, prompt_of(head, ref()), 1, 0);
  const auto encoded = [&](Index end) {
    Index count = 0;
    for (const EntryTable& table : cache->entries(query_block(head, end - 1, end, end, ref()))) {
      const std::vector<float> values = ref().read(table.own_values);
      for (std::size_t k = 1; k < values.size(); k += 3) count += values[k] == 0;
    }
    return count;
  };
  CHECK(encoded(8) == 2);
  for (Index t = 8; t < 12; ++t) {
    REQUIRE(append(*cache, token_block(head, t, t + 1, ref())) == 1);
    CHECK(encoded(t + 1) == t + 1 - 7);  // the step's own value waits beside the six before it
  }
}

// A step changes what waits: of the six tokens offered after 8, the run ends with the first.
TEST_CASE("a block of decoded tokens is taken one by one, because each step encodes a value") {
  Stream stream(8, 15);
  CHECK(append(*stream.cache, token_block(stream.head, 8, 14, ref())) == 1);
}

TEST_CASE("a residual that is no multiple of the group is refused") {
  CHECK_THROWS_WITH_AS(find_method("kivi4").bind(std::vector<Assignment>{{"residual", "100"}}),
                       doctest::Contains("no multiple"), Error);
}

// Groups of 4. The first: min 1, max 4, step 1 at 2 bits; 1.5 lies between codes 0 and 1, and goes to the even one, 0;
// 2.6 goes to 3. The second is constant.
TEST_CASE("int2 rounds to three steps between minimum and maximum of a group") {
  CHECK(rounded_keys("int2", {{"group", "4"}}, {1, 1.5f, 2.6f, 4, 7, 7, 7, 7}) ==
        std::vector<float>{1, 1, 3, 4, 7, 7, 7, 7});
}

// min -1, max 14, step 1 at 4 bits: 0.5 is 1.5 steps from the minimum, between codes 1 and 2; 2 is even, so that it is
// decoded to -1 + 2. 1.5 is 2.5 steps, and goes to 2 as well.
TEST_CASE("ties of int4 go to the even code") {
  CHECK(rounded_keys("int4", {}, {-1, 0.5f, 1.5f, 14}) == std::vector<float>{-1, 1, 1, 14});
}

TEST_CASE("group=0 takes the whole head vector as one group") {
  const std::vector<float> row = {0, 1, 2, 100, 3, 4, 5, 85};
  CHECK(rounded_keys("int8", {{"group", "0"}}, row) != rounded_keys("int8", {{"group", "4"}}, row));
  // step 100 / 255 in f16 is 0.39208984375: 85 is 216.8 steps, 217 steps are 85.08349609375.
  CHECK(rounded_keys("int8", {{"group", "0"}}, row)[7] == 217 * 0.39208984375f);
}

TEST_CASE("integers are within half a step, and do not change the order of numbers") {
  for (const int bits : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(bits);
    const std::vector<Assignment> settings = {{"bits", std::to_string(bits)}, {"group", "0"}};
    for (std::vector<float> row : hostile_blocks(16)) {
      std::ranges::sort(row);
      const std::vector<float> got = rounded_keys("int", settings, row);
      CHECK(std::ranges::is_sorted(got));
      // Half a step, and what rounding minimum and step to f16 adds: 2^-11 of each, and of 2^bits steps.
      const double range = double{row.back()} - row.front(), most = std::max(-row.front(), row.back());
      const double step = range / ((1 << bits) - 1);
      for (std::size_t i = 0; i < row.size(); ++i)
        CHECK(std::abs(double{got[i]} - row[i]) <= step / 2 + (range + most + step) * 0x1p-11 + 0x1p-24 * (1 << bits));
    }
  }
}
