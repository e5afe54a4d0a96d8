// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/replay/measure/host_entries.hpp>
#include <kvbench/replay/measure/measurements.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// Two query heads at position 4 over five tokens with masses 1, 16, 4, 2, 8 and the reverse, of 31.
struct FiveTokens {
  ExactBlock exact;

  FiveTokens() {
    std::vector<float> logits, shares;
    for (const double mass : {1, 16, 4, 2, 8, 8, 2, 4, 16, 1}) {
      logits.push_back(static_cast<float>(std::log(mass)));
      shares.push_back(static_cast<float>(mass / 31));
    }
    set_rows(std::move(logits), std::move(shares));
    exact.block.positions = {4};
    exact.log_sum_exp.assign(2, static_cast<float>(std::log(31.0)));
    exact.visible_first = {0};
    exact.visible_last = {5};
  }

  void set_rows(std::vector<float> logits, std::vector<float> shares) {
    exact.block.scores = ref().adopt(std::move(logits), 2, 5);
    exact.scores = ref().on_host(exact.block.scores);
    exact.shares = ref().on_host(ref().adopt(std::move(shares), 2, 5));
  }
  MetricRow recall(const EntryTables& tables, RecallRange range, Index g = 0) {
    MetricRow row{};
    const Overlap overlap = overlap_of(host_entries(tables, 1, ref()), exact, range, g, 0, 0, ref());
    set_metrics({.overlap = overlap}, row);
    return row;
  }
  EntryTables ids(std::vector<TokenId> kept) { return ids_table(ref(), std::move(kept)); }
};

float share(const MetricRow& row) { return row[Metric::recall]; }
float mass(const MetricRow& row) { return row[Metric::mass_recall]; }

}  // namespace

TEST_CASE("recall of a hand example") {
  FiveTokens t;
  const MetricRow two = t.recall(t.ids({1, 2}), {0, 5});  // the best two are 1 and 4
  CHECK(share(two) == Approx(0.5));
  CHECK(mass(two) == Approx(20.0 / 24));
  const MetricRow best = t.recall(t.ids({4, 1, 2}), {0, 5});
  CHECK(share(best) == 1);
  CHECK(mass(best) == Approx(1));
  const MetricRow worst = t.recall(t.ids({0, 3}), {0, 5});
  CHECK(share(worst) == 0);
  CHECK(mass(worst) == Approx(3.0 / 24));
  CHECK(share(t.recall(t.ids({1, 2}), {0, 5}, 1)) == 0);  // the other head's best are 0 and 3
}

TEST_CASE("recall is computed over the tokens that may be dropped") {
  FiveTokens t;
  // Without token 1 (a sink, say) and token 4 (recent): kept 2 of the candidates 2 and 3.
  CHECK(share(t.recall(t.ids({1, 2, 4}), {2, 4})) == 1);
  CHECK(mass(t.recall(t.ids({1, 3, 4}), {2, 4})) == Approx(0.5));
  CHECK(std::isnan(share(t.recall(t.ids({1, 4}), {2, 4}))));
  t.exact.visible_last = {4};  // token 4 is not visible to the query
  CHECK(share(t.recall(t.ids({1, 4}), {0, 5})) == 1);
  CHECK(mass(t.recall(t.ids({2, 4}), {0, 5})) == Approx(4.0 / 16));
}

TEST_CASE("recall is empty for merged entries and for two sets") {
  FiveTokens t;
  EntryTables merged = t.ids({1, 2});
  merged[0].own_values = ref().adopt(std::vector<float>{1, 2}, 2, 1);
  CHECK(std::isnan(share(t.recall(merged, {0, 5}))));
  EntryTables sets = t.ids({1, 2});
  sets[0].weight_num = ref().adopt(std::vector<float>{0, 2}, 1, 2);
  CHECK(std::isnan(share(t.recall(sets, {0, 5}))));
  EntryTables weighted = t.ids({1, 2});
  weighted[0].weight_num = weighted[0].weight_den = ref().adopt(std::vector<float>{3, 2}, 1, 2);
  CHECK(share(t.recall(weighted, {0, 5})) == Approx(0.5));
}

TEST_CASE("ties go to the lower token") {
  FiveTokens t;
  t.set_rows(std::vector<float>(10, 0.0f), std::vector<float>(10, 0.2f));
  CHECK(share(t.recall(t.ids({0, 1}), {0, 5})) == 1);
  CHECK(share(t.recall(t.ids({1, 4}), {0, 5})) == Approx(0.5));
  CHECK(mass(t.recall(t.ids({3, 4}), {0, 5})) == Approx(1));
}

TEST_CASE("the plain part of tables") {
  EntryTables tables = ids_table(ref(), {5, -1, 7, 9});
  tables[0].weight_num = ref().adopt(std::vector<float>{1, 1, 1, 2}, 1, 4);
  tables[0].weight_den = ref().adopt(std::vector<float>{1, 1, 3, 2}, 1, 4);
  tables.push_back(ids_table(ref(), {1, 2})[0]);
  tables[1].own_keys = ref().adopt(std::vector<float>{1, 2}, 2, 1);
  const HostEntries entries = host_entries(tables, 1, ref());
  CHECK(entries.any_plain());
  CHECK(!entries.all_plain());
  CHECK(!entries.two_sets());
  const EntryTables plain = entries.plain_part(ref());
  REQUIRE(plain.size() == 1);
  CHECK(ref().read(plain[0].ids) == std::vector<std::int32_t>{5, -1, -1, -1});
  CHECK(!plain[0].weight_num.present());
}

TEST_CASE("entries are addressed by query head and query") {
  // Rows (g, i): (0, 0), (0, 1), (1, 0), (1, 1).
  EntryTables tables = {
      {.per_head = true, .per_query = true, .ids = ref().adopt(std::vector<std::int32_t>{0, 1, 2, 3}, 4, 1)},
      {.per_query = true, .ids = ref().adopt(std::vector<std::int32_t>{4, 5}, 2, 1)},
      {.per_head = true, .ids = ref().adopt(std::vector<std::int32_t>{6, 7}, 2, 1)},
      {.ids = ref().adopt(std::vector<std::int32_t>{8}, 1, 1)}};
  const HostEntries entries = host_entries(tables, 2, ref());
  const auto of = [&](Index g, Index i) {
    std::vector<std::int32_t> ids;
    entries.each(g, i, 0, 100, [&](std::int32_t id, std::size_t, std::size_t) { ids.push_back(id); });
    return ids;
  };
  CHECK(of(0, 0) == std::vector<std::int32_t>{0, 4, 6, 8});
  CHECK(of(0, 1) == std::vector<std::int32_t>{1, 5, 6, 8});
  CHECK(of(1, 0) == std::vector<std::int32_t>{2, 4, 7, 8});
  CHECK(of(1, 1) == std::vector<std::int32_t>{3, 5, 7, 8});
}

TEST_CASE("entries are complete where every query has all tokens once, each plain") {
  FiveTokens t;
  const auto complete = [&](const EntryTables& tables, Index tokens) {
    return host_entries(tables, 1, ref()).complete(tokens);
  };
  EntryTables split = t.ids({3, 0});
  split.push_back(t.ids({4, 1, -1, 2})[0]);
  CHECK(complete(t.ids({0, 1, 2, 3, 4}), 5));
  CHECK(complete(split, 5));
  CHECK_FALSE(complete(t.ids({0, 1, 2, 3}), 5));
  EntryTables weighted = t.ids({0, 1, 2, 3, 4});
  weighted[0].weight_den = ref().adopt(std::vector<float>{1, 1, 2, 1, 1}, 1, 5);
  CHECK_FALSE(complete(weighted, 5));
  EntryTables own = t.ids({0, 1, 2, 3, 4});
  own[0].per_query = true;  // other queries may have other tokens
  CHECK_FALSE(complete(own, 5));
}

namespace {

using Ids = std::vector<std::int32_t>;

EntryTable table(Ids ids, Index rows) {
  const Index width = std::ssize(ids) / rows;
  return {.per_query = true, .ids = ref().adopt(std::move(ids), rows, width)};
}

}  // namespace

TEST_CASE("a table on the host: slots in use, plain slots, different sets") {
  const ReadTable rows(on_host(table({1, 5, -1, 0, 2, 3}, 2), ref()));
  CHECK(rows.used == 5);
  CHECK(rows.plain_count == 5);
  CHECK_FALSE(rows.weighted());
  CHECK(std::ranges::equal(rows.row(1), Ids{0, 2, 3}));

  EntryTable weighted = table({4, 2, -1}, 1);
  weighted.weight_num = ref().adopt(std::vector<float>{1, 0, 1}, 1, 3);
  const ReadTable host(on_host(weighted, ref()));
  CHECK(host.plain_count == 1);  // token 4
  CHECK(host.two_sets);          // token 2 is in the denominator only
}

TEST_CASE("ids that increase are recognised") {
  CHECK(increasing_ids(Ids{1, 5, -1}).value().size() == 2);
  CHECK(increasing_ids(Ids{0, 2, 3}).value().size() == 3);
  CHECK_FALSE(increasing_ids(Ids{0, 4, 2}));
  CHECK_FALSE(increasing_ids(Ids{-1, 5, 7}));  // an unused slot first
}

TEST_CASE("a table is translated to the trace's token numbers") {
  const TokenMap shifted{.first = 10, .middle = 4, .last = 2};
  const EntryTable local = table({1, 3, 4, -1}, 1);
  CHECK(ref().read(to_global(local, shifted, ref()).ids) == Ids{11, 13, 16, -1});
  CHECK(to_global(local, TokenMap{.middle = 8}, ref()).ids.same_as(local.ids));

  // Tokens 0 to 3 of the method are 2 to 5 of the trace; token 6 is protected, and token 4 of the method is 7.
  EntryTable rounded = local;
  rounded.token_values = ref().adopt(std::vector<float>{10, 11, 12, 13, 14}, 5, 1);
  const TokenMap two{.first = 2, .middle = 4, .last = 1};
  const std::vector<float> rows = ref().read(to_global(rounded, two, ref()).token_values);
  REQUIRE(rows.size() == 8);
  CHECK(std::vector<float>(rows.begin() + 2, rows.begin() + 6) == std::vector<float>{10, 11, 12, 13});
  CHECK(rows[7] == 14);
  CHECK(ReadTable(on_host(rounded, ref())).plain_count == 0);
  CHECK_FALSE(to_global(rounded, two, ref()).token_keys.present());
}
