// SPDX-License-Identifier: Apache-2.0
// The bytes of methods that retrieve from a full cache in fewer bits, and of heads that share a budget, recomputed from
// n, d, the budget and the settings.
#include <doctest/doctest.h>

#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/methods/contract/method.hpp>
#include <kvbench/replay/measure/bytes.hpp>

#include <support/backends.hpp>

#include <kvbench/methods/registry.hpp>
#include <kvbench/testing/trial.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr Shape retrieval_shape{.n = 96, .decoded = 8, .d = 8, .dv = 6, .group = 3};
constexpr double tokens = 96, d = 8, dv = 6, heads_of_group = 3, budget = 24;

struct ComposedBytes {
  double kv = 0, slow = 0, meta = 0, read = 0;  ///< read: of a query that is answered by 24 entries
};

void check_bytes(const char* name, const std::vector<Assignment>& settings, const ComposedBytes& expected) {
  CAPTURE(name);
  const MethodInfo& info = find_method(name);
  const Row row{&info, info.bind(settings)};
  Trial trial(row, ref());
  const Heads heads = trial.heads(retrieval_shape);
  const Instance instance = trial.open(heads, static_cast<Index>(budget), 0);
  for (const Footprint& arrays : instance.session->footprint()) {
    const Bytes bytes = account(arrays, Element::f16, 24, 96, 8, 6);
    CHECK(bytes.kv == expected.kv);
    CHECK(bytes.slow == expected.slow);
    CHECK(bytes.meta == expected.meta);
    CHECK(bytes.fast == expected.kv + expected.meta - expected.slow);
    CHECK(bytes.read == doctest::Approx(expected.read));
  }
}

}  // namespace

// No key waits; 8 values do. Keys are 24 groups of 4 tokens with a minimum and a step in each channel; a value has two
// groups of 4 and 2 channels. Of 24 entries 22 have values that are encoded.
TEST_CASE("bytes of quest+kivi4: the full cache in fast memory") {
  const double meta = 24 * 2 * d * 2 + heads_of_group * 6 * 4;  // bounds of 24 pages, 6 chosen ones
  const double value = dv / 2 + 2 * 4;
  check_bytes("quest+kivi4", {{"page", "4"}, {"kivi4.group", "4"}, {"kivi4.residual", "8"}},
              {.kv = tokens * d / 2 + 24 * d * 4 + 88 * value + 8 * dv * 2,
               .meta = meta,
               .read = 24 * d / 2 + 24 * d * 4 + 22 * value + 2 * dv * 2 + meta});
}

// 8 sinks in 16 bits; 88 keys and values of two groups each, as 4 channels have a minimum and a step.
TEST_CASE("bytes of clusterkv+int4: the full cache in slow memory, the sinks exact") {
  const double row = d / 2 + 2 * 4 + dv / 2 + 2 * 4;
  const double centroids = 5 * d * 2 + 5 * 2 * 4, sinks = 8 * 2 * (d + dv);  // centroids with sizes and offsets
  check_bytes("clusterkv+int4", {{"sinks", "8"}, {"clusters", "5"}, {"int4.group", "4"}},
              {.kv = sinks + 88 * row,
               .slow = 88 * row,
               .meta = centroids + heads_of_group * (budget - 8) * 4 + 88 * 4,  // chosen tokens; tokens by cluster
               .read = sinks + centroids + 24 * (row + 4 + 4)});
}

// One group per key and per value. int(0.2 d) = 1 channel per query head: its direction, and a number per token.
TEST_CASE("bytes of infinigen+int8: partial keys stay in 16 bits") {
  const double row = d + 4 + dv + 4;
  const double partial = heads_of_group * (tokens + d) * 2;
  check_bytes("infinigen+int8", {},
              {.kv = tokens * row,
               .slow = tokens * row,
               .meta = partial + heads_of_group * budget * 4,
               .read = 24 * (row + 4) + partial});
}

// 80 keys are encoded in 10 groups of 8, and 16 wait; 56 values are encoded, and 40 wait. 24 entries read 20 encoded
// keys, which lie in at most all of the groups.
TEST_CASE("bytes of oracle-topk+kivi2") {
  const double kv = 80 * d / 4 + 10 * d * 4 + 16 * d * 2 + 56 * (dv / 4 + 4) + 40 * dv * 2;
  const double meta = heads_of_group * budget * 4;
  check_bytes("oracle-topk+kivi2", {{"kivi2.group", "8"}, {"kivi2.residual", "40"}},
              {.kv = kv,
               .slow = kv,
               .meta = meta,
               .read = 20 * d / 4 + 10 * d * 4 + 4 * d * 2 + 14 * (dv / 4 + 4) + 10 * dv * 2 + 24 * 4});
}

// The three heads of the layer hold 3 * 24 tokens together, whoever holds them, and each the number of its own in 4
// bytes. int8: one group per key and per value, each with a minimum and a step.
TEST_CASE("bytes of heads that share a budget: those of the layer are those of equal heads") {
  const double token = 2 * (d + dv), rounded = d + 4 + dv + 4;
  const std::pair<const char*, double> cases[] = {
      {"adakv(snapkv)", token}, {"adakv@kvpress(snapkv)", token}, {"adakv(snapkv)+int8", rounded}};
  for (const auto& [name, row_bytes] : cases) {
    CAPTURE(name);
    const MethodInfo& info = find_method(name);
    const Row row{&info, info.bind(std::vector<Assignment>{{"window", "4"}, {"alpha", "0"}})};
    Trial trial(row, ref());
    const Heads heads = trial.heads(retrieval_shape);
    double kv = 0, fewest = tokens;
    for (const Footprint& arrays : trial.open(heads, static_cast<Index>(budget), 0).session->footprint()) {
      const Bytes bytes = account(arrays, Element::f16, 24, 96, 8, 6);
      kv += bytes.kv, fewest = std::min(fewest, bytes.kv / row_bytes);
      CHECK(bytes.meta == 4);
    }
    CHECK(kv == 3 * budget * row_bytes);
    CHECK(fewest < budget);
  }
}

TEST_CASE("bytes of criticalkv(snapkv) are those of snapkv: what ranks tokens is not kept") {
  check_bytes("criticalkv(snapkv)", {{"window", "4"}}, {.kv = budget * 2 * (d + dv), .read = budget * 2 * (d + dv)});
}

// Heads whose values are the first channels of their keys: bytes count once, and entries may not hold other values.

TEST_CASE("values that are a part of the keys take no memory") {
  // 3 tokens with keys of 4 numbers in 2 bytes, of which 2 are the value.
  const Footprint arrays = {{.name = "keys", .rows = 3, .cols = 4},
                            {.name = "values", .rows = 3, .cols = 2, .content = Content::values}};
  CHECK(replay::account(arrays, Element::f16, 0, 3, 4, 0).kv == 24);
  CHECK(replay::account(arrays, Element::f16, 0, 3, 4, 0).full == 24);
  CHECK(replay::account(arrays, Element::f16, 0, 3, 4, 2).kv == 36);
}

TEST_CASE("where values are a part of the keys, those of entries are a part of theirs") {
  const auto rows = [&](std::vector<float> numbers, Index cols) {
    const Index count = std::ssize(numbers) / cols;
    return ref().adopt(std::move(numbers), count, cols);
  };
  HeadTokens tokens{.keys = rows({1, 2, 9, 3, 4, 9}, 3), .values = rows({1, 2, 3, 4}, 2)};
  const EntryTable mean{.ids = ref().adopt(std::vector<std::int32_t>{1}, 1, 1),
                        .own_keys = rows({2, 3, 9}, 3),
                        .own_values = rows({2, 3}, 2)};
  const auto check = [&](const EntryTable& table) { check_entries(ref(), tokens, 1, 2, std::vector{table}); };
  EntryTable other = mean, half = mean;
  other.own_values = rows({2, 4}, 2);
  half.own_keys = {};
  for (const EntryTable& table : {mean, other, half}) CHECK_NOTHROW(check(table));
  tokens.values_in_keys = true;
  CHECK_NOTHROW(check(mean));
  CHECK_THROWS_WITH_AS(check(other), doctest::Contains("no part of their keys"), Unavailable);
  CHECK_THROWS_WITH_AS(check(half), doctest::Contains("no part of their keys"), Unavailable);
}
