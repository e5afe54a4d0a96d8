// SPDX-License-Identifier: Apache-2.0
// The parts of the contract that few or no rows of the registry use, tested with methods written for this purpose.
#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>
#include <support/fakes.hpp>
#include <support/small.hpp>

#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/testing/trial.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The answer to one query over entries in host rows, in fp64.
double expected(const HeadData& head, Index position, const std::vector<Entry>& entries) {
  double num = 0, den = 0;
  for (const Entry& entry : entries) {
    const auto j = static_cast<std::size_t>(entry.id);
    const float key = entry.key.empty() ? head.keys[j] : entry.key[0];
    const float value = entry.value.empty() ? head.values[j] : entry.value[0];
    const double mass = std::exp(double{head.queries[static_cast<std::size_t>(position)]} * key);
    num += entry.num * mass * value;
    den += entry.den * mass;
  }
  return num / den;
}

Row row_of(const MethodInfo& info) { return {&info, info.bind({})}; }

}  // namespace

TEST_CASE("every part of the contract works in prefill and decode, in blocks and token by token") {
  const auto backend = make_ref_backend();
  for (const MethodInfo& info : all_fakes()) {
    CAPTURE(info.name);
    const Row row = row_of(info);
    Trial trial(row, *backend);
    const Heads heads = trial.heads();
    for (const Index budget : {1, 7, 48}) {
      CHECK_NOTHROW(require_finite(trial.prefill(trial.open(heads, budget), heads)));
      const auto single = trial.decode(trial.open(heads, budget), heads, 1);
      const auto blocks = trial.decode(trial.open(heads, budget), heads, 6);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        REQUIRE(single[h].size() == 14);
        for (std::size_t i = 0; i < 14; ++i) {
          CHECK(single[h][i].entries == blocks[h][i].entries);
          CHECK(max_difference(single[h][i].answers, blocks[h][i].answers) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("heads of a layer share a budget and may keep different numbers of tokens") {
  const auto backend = make_ref_backend();
  const MethodInfo info = fake_shared_layer();
  const Row row = row_of(info);
  Trial trial(row, *backend);
  const Heads heads = trial.heads();
  REQUIRE(heads.size() == 3);
  const auto kept = [&](const Heads& layer) {
    std::vector<Ids> ids;
    for (const Result& result : trial.prefill(trial.open(layer, 10), layer)) {
      ids.push_back(ids_of(result.entries[0]));
    }
    return ids;
  };

  const auto ids = kept(heads);
  CHECK(ids[0].size() + ids[1].size() + ids[2].size() == 30);
  CHECK_FALSE((ids[0].size() == 10 && ids[1].size() == 10));
  CHECK(kept({heads[2], heads[0], heads[1]}) == std::vector<Ids>{ids[2], ids[0], ids[1]});
  // Single heads would keep other tokens: the instance sees all heads.
  CHECK((kept({heads[0]})[0] != ids[0] || kept({heads[1]})[0] != ids[1]));
}

// Values 1 2 4 8, window 2: 1 is added in halves to 2 and 4; then 2, now 2.5, is added in halves to 4 and 8.
TEST_CASE("own values replace those of tokens, whose keys remain") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(logs({1, 1, 3, 1}), 3);
  const MethodInfo info = fake_spread_values();
  const auto cache = info.prepare_head(prompt_of(head, *backend), info.bind({}), *backend)(2, 0);
  CHECK(cache->append(token_block(head, 3, 4, *backend)) == 1);
  const QueryBlock block = query_block(head, 3, 4, 4, *backend);
  const auto z = answer(head, block, cache->entries(block), *backend);

  // Token 2 holds 4 + .5 + 1.25 with weight 3, token 3 holds 8 + 1.25 with weight 1.
  CHECK(z[0] == doctest::Approx((3 * 5.75 + 9.25) / 4));
}

// Keys ln 1, ln 4 | ln 9, ln 9 | ln 2, merged in pairs: ln 2 of degree 2, ln 9 of degree 2, ln 2 of degree 1.
TEST_CASE("own keys and values answer with their degrees") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(logs({1, 4, 9, 9, 2, 5}), 5);
  const MethodInfo info = fake_merge_pairs();
  const auto cache = info.prepare_head(prompt_of(head, *backend), info.bind({}), *backend)(3, 0);
  const QueryBlock block = query_block(head, 5, 6, 6, *backend);
  const auto prefilled = answer(head, block, cache->entries(block), *backend);
  CHECK(prefilled[0] == doctest::Approx((2 * 2 * 1.5 + 2 * 9 * 6 + 2 * 16) / (4 + 18 + 2.0)));

  cache->append(token_block(head, 5, 6, *backend));
  const auto decoded = answer(head, block, cache->entries(block), *backend);
  CHECK(decoded[0] == doctest::Approx((6 + 108 + 32 + 5 * 32) / (4 + 18 + 2 + 5.0)));
}

// Weights 1 3 2 5, values 1 2 4 8: N = 2 (1 * 1 + 2 * 4), D = 2 (3 + 5) + 1.
TEST_CASE("numerator and denominator may be different sets") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(logs({1, 3, 2, 5, 1}), 4);
  const MethodInfo info = fake_two_sets();
  const auto cache = info.prepare_head(prompt_of(head, *backend), info.bind({}), *backend)(4, 0);
  const QueryBlock block = query_block(head, 4, 5, 5, *backend);
  const EntryTables tables = cache->entries(block);
  CHECK_NOTHROW(check_entries(*backend, tokens_of(head, 5, *backend), 1, 4, tables));
  CHECK(answer(head, block, tables, *backend)[0] == doctest::Approx(18.0 / 17));
  CHECK(expected(head, 4, visible_entries(head, tables, block, *backend)[0]) == doctest::Approx(18.0 / 17));
}

// Weights 1 5 2 | 4 3, budget 2. Position 3 attends to 1 2 3: shares 5/11 2/11 4/11, token 2 is evicted. Position 4
// attends to 1 3 4: shares 5/12 4/12 3/12, token 4 has the lowest score and is evicted, although it is the newest.
TEST_CASE("observe() gets the attention of every step") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(logs({1, 5, 2, 4, 3}), 3);
  const MethodInfo info = fake_observer();
  const Row row = row_of(info);
  Trial trial(row, *backend);
  const Instance instance = trial.open({head}, 2);
  const auto steps = trial.decode(instance, {head});
  CHECK(ids_of(steps[0][0].entries[0]) == Ids{1, 2, 3});
  CHECK(ids_of(steps[0][1].entries[0]) == Ids{1, 3, 4});
  const std::vector<QueryBlock> last = {query_block(head, 4, 5, 5, *backend)};
  CHECK(ids_of(visible_entries(head, instance.cache->entries(last)[0], last[0], *backend)[0]) == Ids{1, 3});
}

// Query head 0 at position 4 reads j % 3 == 1, at position 5 j % 3 == 2; query head 1 reads the next stripe.
TEST_CASE("a table may differ for every query head and query") {
  const auto backend = make_ref_backend();
  HeadData head = small_head(logs({1, 2, 3, 4, 5, 6}), 4, 2);
  const MethodInfo info = fake_striped();
  const auto cache = info.prepare_head(prompt_of(head, *backend), info.bind({}), *backend)(4, 0);
  cache->append(token_block(head, 4, 6, *backend));
  const QueryBlock block = query_block(head, 4, 6, 6, *backend);
  const EntryTables tables = cache->entries(block);
  const auto rows = visible_entries(head, tables, block, *backend);
  CHECK(ids_of(rows[0]) == Ids{0, 1, 4});
  CHECK(ids_of(rows[1]) == Ids{0, 2, 5});
  CHECK(ids_of(rows[2]) == Ids{0, 2});  // token 5 is not visible at position 4
  CHECK(ids_of(rows[3]) == Ids{0, 3});

  const auto z = answer(head, block, tables, *backend);
  CHECK(z[0] == doctest::Approx((1 * 1 + 2 * 2 + 5 * 16) / 8.0));
  CHECK(z[1] == doctest::Approx((1 * 1 + 3 * 4 + 6 * 32) / 10.0));
  CHECK(z[2] == doctest::Approx((1 * 1 + 3 * 4) / 4.0));
  CHECK(z[3] == doctest::Approx((1 * 1 + 4 * 8) / 5.0));
}

// 2 * 5 * (l + 1) / 5 for the four layers: 2 4 6 8.
TEST_CASE("a plan gives each layer its own budget") {
  const auto backend = make_ref_backend();
  const MethodInfo info = fake_planned();
  const Row row = row_of(info);
  CHECK(info.plan(4, 48, 5, row.params) == std::vector<Index>{2, 4, 6, 8});
  Trial trial(row, *backend);
  Heads heads = trial.heads();
  for (const std::int64_t layer : {0, 1, 2, 3}) {
    heads[0].layer = LayerId(layer);
    const auto results = trial.prefill(trial.open(heads, 5), heads);
    CHECK(std::ssize(ids_of(results[0].entries[0])) == 2 * (layer + 1));
  }
}
