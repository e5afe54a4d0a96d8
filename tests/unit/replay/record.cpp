// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/record.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::replay;
using doctest::Approx;

namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

/// Results on 2 layers, 2 kv heads of 2 query heads, with 2 queries; value v(head, seed, row) of every metric is
/// 100 * head + 10 * seed + row, so that means can be computed by hand.
struct Results {
  ReplayResults results;

  Results() {
    results.trace = "small.h5";
    results.sha256 = std::string(64, 'a');
    results.model_layers = 30;
    results.group = 2;
    results.prompts = {{"first", Protocol::decode, 28}};
    results.methods = {{"seeded", "t=4", true}, {"plain", "", false}};
    results.budgets = {Budget::parse("5")};
    results.configurations = {{0, 0, 7}, {0, 0, 9}, {1, 0, 0}};
    for (std::size_t h = 0; h < 4; ++h) {
      HeadResult head{.place = {0, h / 2, static_cast<Index>(h % 2)},
                      .layer = static_cast<std::int64_t>(h / 2),
                      .positions = {30, 31}};
      for (std::size_t c = 0; c < 3; ++c) {
        ConfigurationResult result{.compress_s = 1, .attend_s = 2, .exact_s = 3};
        result.kept_tokens = static_cast<double>(h);
        result.bytes.kv = 10 * static_cast<double>(h + 1);
        result.peak_bytes = static_cast<double>(h);
        for (std::size_t row = 0; row < 4; ++row) {
          result.metrics.emplace_back();
          result.metrics.back().fill(static_cast<float>(100 * h + 10 * c + row));
        }
        result.rel_err_fro = {1, 2};
        head.results.push_back(result);
      }
      results.heads.push_back(head);
    }
  }

  std::vector<Record> rows(Grain grain) const { return summarize(results, grain); }
  ConfigurationResult& result(std::size_t head, std::size_t index) { return results.heads[head].results[index]; }
};

const Summary& rel_err(const Record& r) { return r.metrics[Metric::rel_err]; }

const std::string few_queries = "no interval of the mean: it takes two blocks of 16 neighbouring queries";

}  // namespace

TEST_CASE("a row over the trace is the mean over heads, queries and seeds") {
  const Results t;
  const std::vector<Record> rows = t.rows(Grain::trace);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].method == "seeded");
  CHECK(rows[0].seeded);
  CHECK(!rows[0].seed);
  CHECK(!rows[0].layer);
  CHECK(rows[0].prompt == "first");
  CHECK(rows[0].trace == "small.h5");
  CHECK(rows[0].sha256 == "aaaaaaaaaaaa");
  CHECK(rows[0].params == "t=4");
  CHECK(rows[0].protocol == Protocol::decode);
  CHECK(rows[0].budget.text() == "5");
  CHECK(rows[0].query_rows == 4 * 4 * 2);
  CHECK(rows[0].layers.size() == 2);
  CHECK(rows[0].model_layers == 30);
  CHECK(rel_err(rows[0]).mean == Approx(150 + 5 + 1.5));
  CHECK(rel_err(rows[1]).mean == Approx(150 + 20 + 1.5));
  CHECK(rel_err(rows[0]).max == 300 + 10 + 3);
  CHECK(rows[0].context_tokens == 28);
  CHECK(rows[0].kept_tokens == Approx(1.5));
  CHECK(rows[0].bytes.kv == Approx(25));
  CHECK(rows[0].peak_bytes == 3);
  CHECK(rows[0].compress_s == Approx(4));  // sum over heads, mean over seeds
  CHECK(rows[0].attend_s == Approx(8));
  CHECK(rows[1].exact_s == Approx(12));
  CHECK(rows[0].rel_err_fro.mean == Approx(1.5));
}

TEST_CASE("a row has an interval from two blocks of queries on, and otherwise the reason") {
  constexpr std::size_t queries = 32;
  Results t;
  for (const Record& row : t.rows(Grain::query)) {  // of two seeds, but one block
    CHECK(std::isnan(rel_err(row).lo));
    CHECK(std::isnan(rel_err(row).hi));
    CHECK(row.reason == (row.query ? "" : few_queries));
  }
  for (HeadResult& head : t.results.heads) {
    head.positions.resize(queries);
    std::iota(head.positions.begin(), head.positions.end(), 30);
    for (ConfigurationResult& result : head.results) {
      result.metrics.resize(2 * queries);
      for (std::size_t row = 0; row < 2 * queries; ++row) result.metrics[row].fill(static_cast<float>(row));
    }
  }
  const Record row = t.rows(Grain::trace)[0];
  CHECK(row.reason.empty());
  CHECK(rel_err(row).lo < rel_err(row).mean);
  CHECK(rel_err(row).hi > rel_err(row).mean);
  CHECK(std::isnan(row.metrics[Metric::relerr_balancekv].lo));  // intervals for rel_err only
}

TEST_CASE("the mean of equal whole numbers is this number") {
  Results t;
  t.results.heads.pop_back();
  for (HeadResult& head : t.results.heads) {
    for (ConfigurationResult& result : head.results)
      result.kept_tokens = 1000, result.bytes.kv = 1024, result.compress_flops = 25;
  }
  const Record row =
      t.rows(Grain::trace)[0];  // 3 heads and 2 seeds: adding sixths does not give a whole number in fp64
  CHECK(row.kept_tokens == 1000);
  CHECK(row.bytes.kv == 1024);
  CHECK(row.compress_flops == 75);
}

TEST_CASE("quantiles interpolate between order statistics") {
  const Results t;
  const std::vector<Record> rows = t.rows(Grain::head);
  const Record* head = nullptr;
  for (const Record& r : rows) {
    if (r.method == "plain" && r.layer == 0 && r.query_head == 1) head = &r;
  }
  REQUIRE(head != nullptr);  // values 22 and 23
  CHECK(head->query_rows == 2);
  CHECK(rel_err(*head).mean == Approx(22.5));
  CHECK(rel_err(*head).p50 == Approx(22.5));
  CHECK(rel_err(*head).p90 == Approx(22.9));
  CHECK(rel_err(*head).p99 == Approx(22.99));
  CHECK(rel_err(*head).p1 == Approx(22.01));
  CHECK(rel_err(*head).max == 23);
  CHECK(head->rel_err_fro.mean == 2);
}

TEST_CASE("grains add rows per layer, per head and seed, per query") {
  const Results t;
  CHECK(t.rows(Grain::layer).size() == 2 + 2 * 2);
  const std::size_t head_rows = 2 * 2 * 2 * 3;  // layers, kv heads, query heads, configurations
  CHECK(t.rows(Grain::head).size() == 6 + head_rows);
  const std::vector<Record> rows = t.rows(Grain::query);
  CHECK(rows.size() == 6 + head_rows * 3);
  bool found = false;
  for (const Record& r : rows) {
    if (r.layer != 1 || r.kv_head != 1 || r.query_head != 2 || r.seed != 9u || r.query != 31) continue;
    found = true;
    CHECK(r.query_rows == 1);
    CHECK(rel_err(r).mean == 300 + 10 + 1);
  }
  CHECK(found);
}

TEST_CASE("values that do not apply are not part of a summary") {
  Results t;
  for (std::size_t h = 0; h < 4; ++h) {
    t.result(h, 2).metrics[0][Metric::recall] = none;
    for (auto& row : t.result(h, 2).metrics) row[Metric::log_z_err] = none;
  }
  const Record row = t.rows(Grain::trace)[1];
  CHECK(row.metrics[Metric::recall].mean == Approx(150 + 20 + 2));
  CHECK(std::isnan(row.metrics[Metric::log_z_err].mean));
  CHECK(std::isnan(row.metrics[Metric::log_z_err].p99));
  CHECK(row.status == Status::ok);
}

TEST_CASE("dense layers are not part of the row over all layers") {
  Results t;
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t c = 0; c < 3; ++c) t.result(h, c).dense = true;
  }
  const std::vector<Record> rows = t.rows(Grain::layer);
  REQUIRE(rows.size() == 6);
  CHECK(rel_err(rows[0]).mean == Approx(250 + 5 + 1.5));
  CHECK(!rows[0].dense);
  CHECK(rows[0].layers == std::vector<std::int64_t>{0, 1});
  CHECK(rows[0].compressed_layers == std::vector<std::int64_t>{1});
  CHECK(rows[0].bytes.kv == (10 + 20 + 30 + 40) / 4.0);  // a model holds them
  CHECK(rows[0].kept_tokens == 2.5);
  CHECK(rows[0].query_rows == 2 * 4 * 2);
  CHECK(rows[2].layer == 0);
  CHECK(rows[2].dense);
  CHECK(rows[2].compressed_layers.empty());
  CHECK(rel_err(rows[2]).mean == Approx(50 + 5 + 1.5));
  CHECK(!rows[4].dense);
}

TEST_CASE("dense layers alone are no result of the row over all layers") {
  Results t;
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t h = 0; h < 2; ++h) t.result(h, c).dense = true;
    for (std::size_t h = 2; h < 4; ++h) t.result(h, c).status = Status::infeasible, t.result(h, c).reason = "too small";
  }
  const std::vector<Record> rows = t.rows(Grain::layer);
  CHECK(rows[0].status == Status::infeasible);
  CHECK(rows[0].reason == "too small");
  CHECK(!rows[0].dense);
  CHECK(rows[2].dense);
  CHECK(rows[4].status == Status::infeasible);
}

TEST_CASE("a failed part fails the row") {
  Results t;
  t.result(3, 1).status = Status::failed;
  t.result(3, 1).reason = "it broke";
  const std::vector<Record> rows = t.rows(Grain::layer);
  CHECK(rows[0].status == Status::failed);
  CHECK(rows[0].reason == "1 of 8 parts failed: it broke");
  CHECK(std::isnan(rel_err(rows[0]).mean));
  CHECK(rows[1].status == Status::ok);
  CHECK(rows[2].status == Status::ok);      // layer 0
  CHECK(rows[4].status == Status::failed);  // layer 1
}

TEST_CASE("a skipped part is left out and named") {
  Results t;
  for (std::size_t h = 0; h < 2; ++h) {
    t.result(h, 2).status = Status::skipped;
    t.result(h, 2).reason = "a sliding window";
    t.result(h, 2).metrics.clear();
  }
  const std::vector<Record> rows = t.rows(Grain::layer);
  CHECK(rows[1].status == Status::ok);
  CHECK(rows[1].reason == "without 2 of 4 parts: a sliding window; " + few_queries);
  CHECK(rel_err(rows[1]).mean == Approx(250 + 20 + 1.5));
  CHECK(rows[3].status == Status::skipped);
  CHECK(rows[3].reason == "a sliding window");
  CHECK(rows[5].status == Status::ok);
  CHECK(rows[5].reason == few_queries);
}

// Layers 0 and 1 have two kv heads each; only methods that keep every token run in the one with a window.
TEST_CASE("rows over all layers summarise a method where all methods run, without sliding windows") {
  Results t;
  for (std::size_t h = 0; h < 2; ++h) t.results.heads[h].windowed = true;
  const std::vector<Record> rows = t.rows(Grain::layer);
  CHECK(rows[1].status == Status::ok);
  CHECK(rel_err(rows[1]).mean == Approx(250 + 20 + 1.5));  // as where layer 0 is skipped
  CHECK(rows[1].compressed_layers == std::vector<std::int64_t>{1});
  CHECK(rows[3].status == Status::ok);  // of the layer alone
}

TEST_CASE("a row that is infeasible in some parts and skipped in the others is infeasible") {
  Results t;
  for (std::size_t h = 0; h < 4; ++h) {
    t.result(h, 2).status = h < 2 ? Status::skipped : Status::infeasible;
    t.result(h, 2).reason = h < 2 ? "a sliding window" : "too dear";
    t.result(h, 2).metrics.clear();
  }
  const std::vector<Record> rows = t.rows(Grain::layer);
  CHECK(rows[1].status == Status::infeasible);
  CHECK(rows[1].reason == "too dear");
}

TEST_CASE("threads summarise rows as one does") {
  Results t;
  const std::vector<Record> one = summarize(t.results, Grain::query), several = summarize(t.results, Grain::query, 3);
  REQUIRE(several.size() == one.size());
  for (std::size_t r = 0; r < one.size(); ++r) {
    CHECK(several[r].order == one[r].order);
    CHECK(several[r].kept_tokens == one[r].kept_tokens);
    CHECK(rel_err(several[r]).rms == rel_err(one[r]).rms);
  }
}

TEST_CASE("joined rows of parts with some of the methods have the order of one summary") {
  Results t;
  t.results.prompts.push_back({"second", Protocol::decode});
  for (std::size_t h = 2; h < 4; ++h) t.results.heads[h].place.prompt = 1;  // two prompts: rows of all, then of each
  for (const Grain grain : {Grain::layer, Grain::query}) {
    const std::vector<Record> whole = summarize(t.results, grain);
    std::vector<Record> joined;
    for (const std::size_t method : {1u, 0u}) {
      ReplayResults part = t.results;
      std::erase_if(part.configurations, [&](const Configuration& key) { return key.method != method; });
      for (HeadResult& head : part.heads) {
        if (method == 0)
          head.results.pop_back();
        else
          head.results.erase(head.results.begin(), head.results.begin() + 2);
      }
      for (Record& record : summarize(part, grain)) joined.push_back(std::move(record));
    }
    put_in_order(joined);
    REQUIRE(joined.size() == whole.size());
    for (std::size_t r = 0; r < whole.size(); ++r) {
      CHECK(joined[r].method == whole[r].method);
      CHECK(joined[r].prompt == whole[r].prompt);
      CHECK(joined[r].layer == whole[r].layer);
      CHECK(joined[r].query_head == whole[r].query_head);
      CHECK(joined[r].query == whole[r].query);
      CHECK(joined[r].seed == whole[r].seed);
      CHECK(rel_err(joined[r]).mean == rel_err(whole[r]).mean);
    }
  }
}
