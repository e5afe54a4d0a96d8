// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>

#include <support/small.hpp>

#include <kvbench/methods/contract/host_table.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

EntryTable table_of(Ids ids) {
  const auto width = static_cast<Index>(ids.size());
  return {.ids = ref().adopt(std::move(ids), 1, width)};
}

}  // namespace

// Weights 1 3 4, values 1 2 4. Token 1 has weight 2 in both sums; token 2 occurs only in the numerator:
//   numerator 1 * 1 + 2 * 3 * 2 + 4 * 4 = 29, denominator 1 + 2 * 3 = 7.
TEST_CASE("answers are the weighted sums over all tables") {
  const HeadData head = small_head(logs({1, 3, 4}), 3);
  const QueryBlock block = query_block(head, 2, 3, 3, ref());
  EntryTable weighted = table_of({1, 2, -1});
  weighted.weight_num = ref().adopt(std::vector<float>{2, 1, 9}, 1, 3);
  weighted.weight_den = ref().adopt(std::vector<float>{2, 0, 9}, 1, 3);
  const EntryTables tables = {table_of({0}), weighted};

  CHECK(answer(head, block, tables, ref())[0] == doctest::Approx(29.0 / 7));
  AttentionState sums = empty_state(ref(), 1, 1);
  std::vector<Buffer<float>> logits;
  attend(ref(), tokens_of(head, 3, ref()), block, tables, sums, &logits);
  const auto shares = observed_weights(tables, logits, on_host(sums, ref()), ref());
  CHECK(ref().read(shares[0])[0] == doctest::Approx(1.0 / 7));
  CHECK(ref().read(shares[1])[0] == doctest::Approx(6.0 / 7));
}

// Rows by token in place of those of tokens 1 and 2: weights 5 and 1, values 2 and 7.
TEST_CASE("answers follow rows by token where a table has them") {
  const HeadData head = small_head(logs({1, 3, 4}), 3);
  const QueryBlock block = query_block(head, 2, 3, 3, ref());
  EntryTable rounded = table_of({1, 2});
  rounded.token_keys = ref().adopt(logs({9, 5, 1}), 3, 1);
  CHECK(answer(head, block, {table_of({0}), rounded}, ref())[0] == doctest::Approx((1 * 1 + 5 * 2 + 1 * 4) / 7.0));
  rounded.token_values = ref().adopt(std::vector<float>{9, 2, 7}, 3, 1);
  CHECK(answer(head, block, {table_of({0}), rounded}, ref())[0] == doctest::Approx((1 * 1 + 5 * 2 + 1 * 7) / 7.0));
  rounded.token_keys = {};
  CHECK(answer(head, block, {rounded}, ref())[0] == doctest::Approx((3 * 2 + 4 * 7) / 7.0));
}

// Weights 1 and 3, values 1 and 2, which give 7 / 4. Weights of the denominator as stated; the range is [1, 3].
TEST_CASE("answers are clamped to a range, and are 0 before that where the denominator is not positive") {
  const auto answered = [&](std::vector<float> keys, std::vector<float> den, std::vector<float> range) {
    const HeadData head = small_head(std::move(keys), 2);
    EntryTable table = table_of({0, 1});
    table.weight_den = ref().adopt(std::move(den), 1, 2);
    table.range = ref().adopt(std::move(range), 2, 1);
    return answer(head, query_block(head, 1, 2, 2, ref()), {table}, ref())[0];
  };
  CHECK(answered(logs({1, 3}), {1, 1}, {1, 3}) == doctest::Approx(7.0 / 4));
  CHECK(answered(logs({1, 3}), {2, -0.25}, {1, 3}) == doctest::Approx(3));  // 7 / 1.25
  CHECK(answered(logs({1, 3}), {7, 7}, {1, 3}) == doctest::Approx(1));      // 7 / 28
  CHECK(answered(logs({1, 3}), {1, -3}, {1, 3}) == doctest::Approx(1));     // 7 / -8
  CHECK(answered(logs({1, 3}), {1, -3}, {-1, 3}) == 0);
  CHECK(answered({0, 0}, {1, -1}, {1, 3}) == doctest::Approx(1));  // 3 / 0
}

TEST_CASE("a range leaves an answer without entries at 0") {
  const HeadData head = small_head({0, 0}, 2);
  EntryTable table = table_of({-1});
  table.range = ref().adopt(std::vector<float>{1, 3}, 2, 1);
  CHECK(answer(head, query_block(head, 1, 2, 2, ref()), {table}, ref())[0] == 0);
}

TEST_CASE("entries outside the causal mask of a query do not answer it") {
  const HeadData head = small_head(logs({1, 3, 4}), 3);
  const QueryBlock block = query_block(head, 0, 3, 3, ref());
  const auto z = answer(head, block, {table_of({0, 1, 2})}, ref());
  CHECK(z[0] == doctest::Approx(1));
  CHECK(z[1] == doctest::Approx((1 + 3 * 2) / 4.0));
  CHECK(z[2] == doctest::Approx((1 + 3 * 2 + 4 * 4) / 8.0));
}

TEST_CASE("faults of entries that break the contract are reported") {
  const HeadData head = small_head({0, 0, 0}, 3, 2);
  const HeadTokens tokens = tokens_of(head, 3, ref());
  const auto check = [&](const EntryTables& tables) { check_entries(ref(), tokens, 2, 3, tables); };
  const auto with = [&](auto change) {
    EntryTable table = table_of({0, 2});
    change(table);
    return EntryTables{table};
  };
  const auto numbers = [&](std::vector<float> x) {
    const auto width = static_cast<Index>(x.size());
    return ref().adopt(std::move(x), 1, width);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();

  CHECK_NOTHROW(check({}));
  CHECK_NOTHROW(check(with([](EntryTable&) {})));
  CHECK_THROWS_WITH(check({EntryTable{}}), doctest::Contains("without ids"));
  CHECK_THROWS_WITH(check(with([](EntryTable& t) { t.per_head = true; })), doctest::Contains("number of rows"));
  CHECK_THROWS_WITH(check(with([](EntryTable& t) { t.per_query = true; })), doctest::Contains("number of rows"));
  CHECK_THROWS_WITH(check({table_of({0, 3})}), doctest::Contains("out of range"));
  CHECK_THROWS_WITH(check({table_of({0, -2})}), doctest::Contains("out of range"));
  CHECK_THROWS_WITH(check({table_of({1, 1})}), doctest::Contains("twice in N"));
  CHECK_THROWS_WITH(check({table_of({1}), table_of({1})}), doctest::Contains("twice in N"));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) { t.weight_num = numbers({1, nan}); })), doctest::Contains("weight"));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) { t.weight_num = numbers({1}); })), doctest::Contains("shape"));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) { t.own_keys = numbers({1}); })), doctest::Contains("own keys"));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) {
                      t.own_values = ref().adopt(std::vector<float>{1, nan}, 2, 1);
                    })),
                    doctest::Contains("own value"));
  const auto ranged = [&](std::vector<float> range) {
    return with([&](EntryTable& t) {
      const Index width = std::ssize(range) / 2;
      t.weight_den = numbers({1, -1});
      if (width > 0) t.range = ref().adopt(std::move(range), 2, width);
    });
  };
  CHECK_NOTHROW(check(ranged({1, 3})));
  CHECK_THROWS_WITH(check(ranged({})), doctest::Contains("negative weight without a range"));
  CHECK_THROWS_WITH(check(ranged({1, 2, 3, 4})), doctest::Contains("range that is not [2, dv]"));
  CHECK_THROWS_WITH(check(ranged({1, nan})), doctest::Contains("range that is not finite"));
  CHECK_THROWS_WITH(check(ranged({3, 1})), doctest::Contains("least number exceeds"));
  const auto rows = [&](std::vector<float> x) {
    const auto count = static_cast<Index>(x.size());
    return ref().adopt(std::move(x), count, 1);
  };
  CHECK_NOTHROW(check(with([&](EntryTable& t) { t.token_keys = rows({1, 2, 3}); })));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) { t.token_keys = rows({1, 2}); })), doctest::Contains("token keys"));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) {
                      t.token_values = rows({1, 2, 3, 4});
                    })),
                    doctest::Contains("token values"));
  CHECK_THROWS_WITH(check(with([&](EntryTable& t) {
                      t.token_values = rows({1, nan, 3});
                    })),
                    doctest::Contains("token value"));

  // Increasing rows, disjoint or interleaved, in and out of the order of the tables.
  CHECK_NOTHROW(check({table_of({1, 2, -1}), table_of({0, -1})}));
  CHECK_NOTHROW(check({table_of({0, 2}), table_of({1})}));
  CHECK_NOTHROW(check({table_of({2, -1, 0}), table_of({-1})}));
  CHECK_THROWS_WITH(check({table_of({1, 2}), table_of({0, 1})}), doctest::Contains("twice in N"));
  CHECK_THROWS_WITH(check({table_of({0, 2}), table_of({-1, 2})}), doctest::Contains("twice in N"));
  CHECK_THROWS_WITH(check({table_of({0, -1, 0})}), doctest::Contains("twice in N"));

  // One token may occur in both sums through two entries.
  EntryTable numerator = table_of({1}), denominator = numerator;
  numerator.weight_den = numbers({0});
  denominator.weight_num = numbers({0});
  CHECK_NOTHROW(check({numerator, denominator}));
  CHECK_THROWS_WITH(check({denominator, denominator}), doctest::Contains("twice in D"));
}
