// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/stages/exact_ends.hpp>
#include <support/rounding.hpp>
#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

constexpr Index d = 32;

/// The tokens whose keys are rounded while the query of token `end` - 1 is answered; values must be alike.
Ids rounded(CompressedCache& cache, const HeadData& head, Index end) {
  Ids out;
  for (const EntryTable& table : cache.entries(query_block(head, end - 1, end, end, ref()))) {
    const std::vector<float> keys = ref().read(table.own_keys), values = ref().read(table.own_values);
    CHECK(keys == values);
    const Ids ids = ref().read(table.ids);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const auto row = keys.begin() + static_cast<std::ptrdiff_t>(k) * d;
      const auto exact = head.keys.begin() + static_cast<std::ptrdiff_t>(ids[k]) * d;
      if (!std::equal(row, row + d, exact)) out.push_back(ids[k]);
    }
  }
  std::ranges::sort(out);
  return out;
}

HeadData ten_of_fourteen() {
  HeadData head = head_of(random_numbers(14 * d, 7, 1), 14);
  head.n = 10;
  return head;
}

}  // namespace

TEST_CASE("the first tokens and the most recent ones stay in 16 bits, at every step") {
  const HeadData head = ten_of_fourteen();
  for (const char* format : {"q4_0", "int4", "fp8"}) {
    CAPTURE(format);
    const auto cache = open_cache(format, {{"first", "2"}, {"last", "3"}}, prompt_of(head, ref()), 1, 0);
    CHECK(rounded(*cache, head, 10) == Ids{2, 3, 4, 5, 6});
    for (Index t = 10; t < 14; ++t) {
      REQUIRE(append(*cache, token_block(head, t, t + 1, ref())) == 1);
      const Ids found = rounded(*cache, head, t + 1);
      CHECK(found.front() == 2);
      CHECK(found.back() == t - 3);
      CHECK(std::ssize(found) == t - 4);
    }
  }
}

TEST_CASE("what is rounded has the numbers that it has without exact ends") {
  const HeadData head = ten_of_fourteen();
  const std::vector<float> rows(head.keys.begin(), head.keys.begin() + 10 * d);
  const std::vector<float> all = rounded_keys("q8_0", {}, rows, 10),
                           some = rounded_keys("q8_0", {{"first", "4"}}, rows, 10);
  CHECK(std::equal(some.begin(), some.begin() + 4 * d, rows.begin()));
  CHECK(std::equal(some.begin() + 4 * d, some.end(), all.begin() + 4 * d));
  CHECK(rounded_keys("q8_0", {{"first", "100"}}, rows, 10) == rows);
  CHECK(rounded_keys("q8_0", {{"last", "100"}}, rows, 10) == rows);
}

// A key of 32 numbers takes 64 bytes in 16 bits, and 18 in q4_0; so does a value.
TEST_CASE("bytes of exact tokens are those of 16 bits") {
  const HeadData head = ten_of_fourteen();
  const auto bytes = [&](const std::vector<Assignment>& settings) {
    const auto cache = open_cache("q4_0", settings, prompt_of(head, ref()), 1, 0);
    double sum = 0;
    for (const FootprintArray& array : cache->footprint())
      sum += static_cast<double>(array.rows * array.cols) * element_bytes(array.element, Element::f16);
    return sum;
  };
  CHECK(bytes({}) == 10 * 36);
  CHECK(bytes({{"first", "2"}}) == 8 * 36 + 2 * 128);
  CHECK(bytes({{"last", "3"}}) == 7 * 36 + 3 * 128);
  CHECK(bytes({{"first", "2"}, {"last", "3"}}) == 5 * 36 + 5 * 128);
  CHECK(bytes({{"first", "9"}, {"last", "9"}}) == 10 * 128);
}

// h2o with q4_0 keeps what h2o keeps; of the kept tokens those at positions 0 and 1 are exact.
TEST_CASE("in a composition the first tokens are those of the context") {
  const HeadData head = ten_of_fourteen();
  const auto cache = open_cache("sink+q4_0", {{"sinks", "1"}, {"q4_0.first", "2"}}, prompt_of(head, ref()), 5, 0);
  CHECK(rounded(*cache, head, 10) == Ids{6, 7, 8, 9});
}

TEST_CASE("groups of several tokens cannot leave some of them out") {
  const HeadData head = ten_of_fourteen();
  const HeadPrompt prompt = prompt_of(head, ref());
  const MethodInfo& kivi = find_method("kivi4");
  const Codecs codecs = kivi.quantiser.layer_codecs(std::span(&prompt, 1), kivi.bind({}), 0, 0, ref()).front();
  CHECK_THROWS_AS(with_exact_ends(codecs, {.first = 1}), Unavailable);
  CHECK(with_exact_ends(codecs, {}).keys == codecs.keys);
  CHECK_THROWS_AS(kivi.bind(std::vector<Assignment>{{"first", "1"}}), Error);
}
