// SPDX-License-Identifier: Apache-2.0
// The bytes that one query reads of every method that retrieves, counted by hand from n, d, the budget and the entries
// that answer it.
#include <functional>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/replay/measure/bytes.hpp>
#include <kvbench/replay/measure/host_entries.hpp>

#include <support/backends.hpp>
#include <support/rows.hpp>
#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr Shape shape{.n = 96, .decoded = 8, .d = 8, .dv = 6, .group = 3};
constexpr double n = shape.n, d = shape.d, dv = shape.dv, G = shape.group, B = 24;
constexpr double token = 2 * (d + dv);  ///< bytes of a key and a value, bf16

/// What answers the query at the last position, with the whole context before it.
struct Answering {
  double beyond = 0;      ///< entries of all query heads beside `resident`
  double in_buckets = 0;  ///< tokens in the buckets of codes that query heads ask
};

struct HandCount {
  std::vector<Assignment> settings;
  double resident = 0;  ///< first and last tokens that answer each query head
  std::function<double(const Answering&)> bytes;
  bool per_head = true;  ///< query heads choose for themselves; otherwise they read the same rows once
};

const std::map<std::string, HandCount>& counts() {
  static const std::map<std::string, HandCount> table = {
      {"oracle-topk", {.bytes = [](const Answering& a) { return a.beyond * (token + 4); }}},
      // Its query heads share what they read: at most B tokens, without those whose weight is 0.
      {"oracle-error", {.bytes = [](const Answering& a) { return a.beyond * (token + 4); }, .per_head = false}},
      // Bounds of 24 pages of 4 tokens; 6 pages of each query head.
      {"quest",
       {.settings = {{"page", "4"}},
        .bytes = [](const Answering& a) { return a.beyond * token + 24 * 2 * d * 2 + G * 6 * 4; }}},
      // One skewed channel of each token for each query head, and its direction.
      {"infinigen", {.bytes = [](const Answering& a) { return a.beyond * (token + 4) + G * (n + d) * 2; }}},
      // Of 96 - 12 tokens between first and last ones 4 are sampled first: their keys.
      {"vattention", {.bytes = [](const Answering& a) { return a.beyond * (token + 4 + 4) + G * 4 * d * 2; }}},
      // 2 first and 8 last tokens; of the others a norm, an id and a weight, and the mean key. The bounds of a bucket
      // of each of 4 tables for each query head; the token numbers in these buckets, which the tokens that answer do
      // not tell (tests/unit/methods/magicpig.cpp counts them).
      {"magicpig",
       {.settings = {{"bits", "3"}, {"tables", "4"}, {"sinks", "2"}, {"window", "8"}},
        .resident = 10,
        .bytes =
            [](const Answering& a) {
              return 10 * token + a.beyond * (token + 4 + 4 + 4) + G * 4 * 2 * 4 + a.in_buckets * 4 + d * 2;
            }}},
      // Quest's bounds and pages; 72 keys of its tokens in 4 bits with two numbers; the tokens that are left.
      {"twilight",
       {.settings = {{"page", "4"}},
        .bytes =
            [](const Answering& a) {
              return a.beyond * (token + 4) + 24 * 2 * d * 2 + G * 6 * 4 + 72 * (d / 2 + 2 * 2);
            }}},
  };
  return table;
}

/// Counted in the test below.
const std::set<std::string> by_number = {"clusterkv", "clusterkv-repo", "retroinfer", "rocketkv"};

/// The entries of each query head, counted from the tables as a reader of the contract would.
Answering answering(const HandCount& count, const HeadData& head, const EntryTables& tables, const QueryBlock& query) {
  Answering out;
  const auto rows = visible_entries(head, tables, query, ref());
  const std::size_t heads = count.per_head ? rows.size() : 1;
  for (std::size_t g = 0; g < heads; ++g) out.beyond += static_cast<double>(rows[g].size()) - count.resident;
  return out;
}

}  // namespace

TEST_CASE("a query of every method that retrieves reads the bytes that a count by hand gives") {
  for (const MethodInfo& info : all_methods()) {
    if (info.kind != Kind::retrieval || by_number.contains(info.name)) continue;
    CAPTURE(info.name);
    REQUIRE_MESSAGE(counts().contains(info.name), "a new method that retrieves needs its reads counted by hand here");
    const HandCount& count = counts().at(info.name);
    const Row row{&info, info.bind(count.settings)};
    Trial trial(row, ref());
    const Heads heads = trial.heads(shape);
    const Instance instance = trial.open(heads, static_cast<Index>(B), 0);
    std::vector<QueryBlock> queries;
    for (const HeadData& head : heads) queries.push_back(query_block(head, 95, 96, 96, ref()));
    const std::vector<EntryTables> tables = instance.session->entries(queries);
    const auto footprints = instance.session->footprint();
    for (std::size_t h = 0; h < heads.size(); ++h) {
      const HostEntries entries(instance.session->checked(h, tokens_of(heads[h], 96, ref())), 1);
      const auto [retrieved, estimated] = entries.rows_read(shape.group, 0, 0, 96);
      Answering found = answering(count, heads[h], tables[h], queries[h]);
      CHECK(found.beyond > 0);
      for (const FootprintArray& array : footprints[h]) {
        if (array.name == "tokens by code") found.in_buckets = array.extra;
      }
      CHECK(account(footprints[h], Element::f16, retrieved, 96, 8, 6, estimated).read == count.bytes(found));
    }
  }
}

// Heads of 8 tokens, d = dv = 1: a token has 4 bytes. clusterkv reads its sink (4), 7 centroids with sizes and
// offsets (70), and for each query head tokens with two numbers (12): one with trim, the cluster {1, 2, 3} with pad.
// retroinfer reads 2 tokens (8), 2 centroids (4), a number, a size and an offset of each chosen cluster (12), and
// 3 tokens (12) or the sum of their values (2).
// rocketkv: 96 / 4^0.32 = 61 tokens stay; 61 / 24 = 2.54: pages of 2, round(16 / 2.54) = 6 channels.
TEST_CASE("clusterkv, retroinfer and rocketkv read the bytes that a count by hand gives") {
  const auto read = [](const char* method, const HeadData& head, Index budget, std::vector<Assignment> settings) {
    const auto cache = open_cache(method, std::move(settings), prompt_of(head, ref()), budget, 0);
    const auto tokens = static_cast<std::int32_t>(head.n);
    std::vector<HostTable> tables;
    for (const EntryTable& table : cache->entries(query_block(head, head.n - 1, head.n, head.n, ref())))
      tables.push_back(on_host(table, ref()));
    const auto [retrieved, estimated] = HostEntries(tables, 1).rows_read(head.group, 0, 0, tokens);
    return account(cache->footprint(), Element::f16, retrieved, head.n, head.d, head.dv, estimated).read;
  };
  for (const char* method : {"clusterkv", "clusterkv-repo"}) {
    const auto clusters = [&](Index group, const char* fill) {
      return read(method, small_head({0, 1, 1, 1, -1, -1, -1, -1}, 8, group), 2,
                  {{"sinks", "1"}, {"clusters", "7"}, {"fill", fill}});
    };
    CHECK(clusters(1, "trim") == 4 + 70 + 12);
    CHECK(clusters(2, "pad") == 4 + 70 + 2 * 3 * 12);
  }
  const auto infer = [&](Index budget, const char* estimated) {
    return read("retroinfer", small_head({0, -1, -2, -3, 1, 1, 1, 0}, 8), budget,
                {{"sinks", "1"}, {"window", "1"}, {"tokens_per_cluster", "4"}, {"estimated", estimated}});
  };
  CHECK(infer(6, "0.5") == 8 + 4 + 2 * 12 + 2 * 2);
  CHECK(infer(7, "0.25") == 8 + 4 + 2 * 12 + 2 + 12);
  CHECK(infer(7, "0") == 8 + 4 + 12 + 12);
  CHECK(read("rocketkv", random_head(shape, 1, ref()), 12, {{"window", "8"}}) == 31 * 12 + 12 * (28 + 4));
}

// Rows of three query heads: a table that they share is read once, one per query head three times, whatever else there
// is; tables beside the full cache are not counted with entries.
TEST_CASE("a shared row is read once, and one of each query head for each") {
  const auto ids = [&](std::vector<std::int32_t> all, Index rows) {
    const Index width = std::ssize(all) / rows;
    return ref().adopt(std::move(all), rows, width);
  };
  const auto table = [&](EntryTable one) { return on_host(one, ref()); };
  const HostEntries entries(
      {table({.place = Place::resident, .ids = ids({0, 1}, 1)}), table({.ids = ids({2, 3, -1}, 1)}),
       table({.per_head = true, .ids = ids({4, 5, 6, -1, 7, 9}, 3)}),
       table({.place = Place::estimated, .ids = ids({8}, 1)})},
      1);
  CHECK(entries.rows_read(3, 0, 0, 9).retrieved == 2 + 4);  // token 9 is not visible
  CHECK(entries.rows_read(3, 0, 0, 9).estimated == 1);
  CHECK(entries.rows_read(3, 0, 0, 10).retrieved == 2 + 5);
}

TEST_CASE("rows beside those of entries, and rows of estimates, are read up to the size of the array") {
  const Footprint footprint = {
      {.name = "keys", .rows = 10, .cols = 1, .read = Read::with_entry, .extra = 3},
      {.name = "bounds",
       .element = Element::i32,
       .rows = 8,
       .cols = 2,
       .read = Read::with_entry,
       .share = 0,
       .extra = 5},
      {.name = "sums", .rows = 4, .cols = 3, .read = Read::with_estimate, .content = Content::meta}};
  CHECK(account(footprint, Element::f16, 4, 10, 1, 0, 2).read == (4 + 3) * 2 + 5 * 8 + 2 * 6);
  CHECK(account(footprint, Element::f16, 9, 10, 1, 0, 7).read == 10 * 2 + 5 * 8 + 4 * 6);
}
