// SPDX-License-Identifier: Apache-2.0
// Heads whose values are the first channels of their keys: bytes count once, and entries may not hold other values.
#include <doctest/doctest.h>

#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/methods/contract/method.hpp>
#include <kvbench/replay/measure/bytes.hpp>

using namespace kvbench;
using namespace kvbench::methods;

TEST_CASE("values that are a part of the keys take no memory") {
  // 3 tokens with keys of 4 numbers in 2 bytes, of which 2 are the value.
  const Footprint arrays = {{.name = "keys", .rows = 3, .cols = 4},
                            {.name = "values", .rows = 3, .cols = 2, .content = Content::values}};
  CHECK(replay::account(arrays, Element::f16, 0, 3, 4, 0).kv == 24);
  CHECK(replay::account(arrays, Element::f16, 0, 3, 4, 0).full == 24);
  CHECK(replay::account(arrays, Element::f16, 0, 3, 4, 2).kv == 36);
}

TEST_CASE("where values are a part of the keys, those of entries are a part of theirs") {
  const auto backend = make_ref_backend();
  const auto rows = [&](std::vector<float> numbers, Index cols) {
    const Index count = std::ssize(numbers) / cols;
    return backend->adopt(std::move(numbers), count, cols);
  };
  HeadTokens tokens{.keys = rows({1, 2, 9, 3, 4, 9}, 3), .values = rows({1, 2, 3, 4}, 2)};
  const EntryTable mean{.ids = backend->adopt(std::vector<std::int32_t>{1}, 1, 1),
                        .own_keys = rows({2, 3, 9}, 3),
                        .own_values = rows({2, 3}, 2)};
  const auto check = [&](const EntryTable& table) { check_entries(*backend, tokens, 1, 2, std::vector{table}); };
  EntryTable other = mean, half = mean;
  other.own_values = rows({2, 4}, 2);
  half.own_keys = {};
  for (const EntryTable& table : {mean, other, half}) CHECK_NOTHROW(check(table));
  tokens.values_in_keys = true;
  CHECK_NOTHROW(check(mean));
  CHECK_THROWS_WITH_AS(check(other), doctest::Contains("no part of their keys"), Unavailable);
  CHECK_THROWS_WITH_AS(check(half), doctest::Contains("no part of their keys"), Unavailable);
}
