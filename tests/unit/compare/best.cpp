// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/best.hpp>

#include <cmath>
#include <functional>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/kernels/philox.hpp>
#include <kvbench/replay/records/figures.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using doctest::Approx;

namespace {

using Value = std::function<float(std::size_t query, std::uint32_t seed)>;

/// Results of one layer with two kv heads of one query head and 128 queries (8 blocks), computed by functions.
struct Made {
  ReplayResults results;

  explicit Made(std::size_t queries = 128) {
    results.trace = "t.h5";
    results.prompts = {{"0", Protocol::prefill}};
    results.budgets = {Budget::parse("25%")};
    for (Index h = 0; h < 2; ++h) {
      HeadResult head{.place = {0, 0, h}, .layer = 7};
      for (std::size_t q = 0; q < queries; ++q) head.positions.push_back(static_cast<std::int32_t>(q));
      results.heads.push_back(head);
    }
  }
  Made& with(const std::string& name, Value value, std::vector<std::uint32_t> seeds = {}) {
    const bool seeded = !seeds.empty();
    if (!seeded) seeds = {0};
    results.methods.push_back({name, "", seeded});
    for (const std::uint32_t seed : seeds) {
      results.configurations.push_back({results.methods.size() - 1, 0, seed});
      for (HeadResult& head : results.heads) {
        ConfigurationResult result;
        for (std::size_t q = 0; q < head.positions.size(); ++q) {
          result.metrics.emplace_back();
          result.metrics.back().fill(value(q, seed));
        }
        result.rel_err_fro = {0};
        head.results.push_back(std::move(result));
      }
    }
    return *this;
  }
  std::vector<Record> rows() const {
    std::vector<Record> records = summarize(results, Grain::trace);
    mark_best(records, figure_named("rel_err"));
    return records;
  }
};

Value constant(float value) {
  return [value](auto, auto) { return value; };
}

}  // namespace

TEST_CASE("a row that was calibrated on the evaluated text is no candidate") {
  Made made;
  made.with("a", constant(3)).with("calibrated", constant(1)).with("c", constant(2));
  const kvbench::methods::Note note{.text = "calibrated on the evaluated context"};
  for (HeadResult& head : made.results.heads) head.results[1].notes.push_back(note);
  const auto rows = made.rows();
  CHECK(rows[1].reason == "calibrated on the evaluated context");
  CHECK(rows[1].best.empty());
  CHECK(rows[0].best == "c");
}

TEST_CASE("random is compared with the best row, and is the best only of itself") {
  Made made;
  const auto rows = made.with("random", constant(1)).with("a", constant(3)).with("b", constant(2)).rows();
  for (const Record& row : rows) CHECK(row.best == "b");
  CHECK(rows[0].diff_best == Approx(-1));
  CHECK(rows[1].diff_best == Approx(1));
  CHECK(Made().with("random", constant(1)).rows()[0].best == "random");
}

TEST_CASE("differences to the best by hand") {
  // 8 blocks and 3 candidates, so that Holm starts with 3 pairs: 3 * 2 / 2^8 is below 5 %.
  Made made;
  made.with("exact", constant(0)).with("oracle-topk", constant(0.5f)).with("a", constant(3)).with("b", constant(1));
  made.with("c", [](std::size_t q, auto) { return q / 16 % 2 == 0 ? 0.5f : 1.75f; });  // -0.5 and 0.75 alternately
  const auto rows = made.rows();
  for (const std::size_t reference : {0, 1}) {
    CHECK(rows[reference].best.empty());
    CHECK(!rows[reference].tied);
    CHECK(std::isnan(rows[reference].diff_best));
  }
  for (const std::size_t candidate : {2, 3, 4}) CHECK(rows[candidate].best == "b");
  CHECK(rows[2].diff_best == 2);
  CHECK(rows[2].diff_best_interval.lo == 2);
  CHECK(rows[2].diff_best_interval.hi == 2);
  CHECK(rows[2].tied == false);
  CHECK(rows[3].diff_best == 0);
  CHECK(rows[3].tied == true);
  CHECK(rows[4].diff_best == Approx(0.125));
  CHECK(rows[4].diff_best_interval.lo < 0);
  CHECK(rows[4].diff_best_interval.hi > 0);
  CHECK(rows[4].tied == true);
}

TEST_CASE("rows that cannot be compared have no flag") {
  Made made;
  made.with("a", constant(1)).with("partial", constant(0.5f)).with("broken", constant(2)).with("endless", constant(2));
  made.results.heads[1].results[1].status = Status::skipped;  // has results for one of two heads
  for (HeadResult& head : made.results.heads) {
    head.results[2].status = Status::failed;
    head.results[3].metrics[5].fill(std::numeric_limits<float>::infinity());
  }
  const auto rows = made.rows();
  CHECK(rows[0].best == "a");
  CHECK(rows[1].best.empty());
  CHECK(!rows[1].tied);
  CHECK(!rows[2].tied);
  CHECK(rows[3].best == "a");
  CHECK(!rows[3].tied);
}

TEST_CASE("too few blocks and single seeds leave rows without a mark, because nothing was tested") {
  Made few(64);  // 4 blocks: no p-value below 2 / 2^4
  few.with("a", constant(1)).with("b", constant(3));
  CHECK(few.rows()[0].tied == true);
  CHECK(!few.rows()[1].tied);
  CHECK(few.rows()[1].diff_best == 2);
  Made one;
  one.with("a", constant(1)).with("b", constant(3), {9});
  CHECK(one.rows()[1].best == "a");
  CHECK(!one.rows()[1].tied);
}

namespace {

/// Rows over several layers, one kv head each, on 8 blocks of queries of each text: error[text][layer] of each method.
/// The layers have a distance of `step`.
std::vector<Record> rows_over(Index model_layers, Index step,
                              const std::vector<std::vector<std::vector<float>>>& methods) {
  Made made;
  made.results.heads.clear();
  made.results.prompts.clear();
  made.results.model_layers = model_layers;
  for (std::size_t text = 0; text < methods[0].size(); ++text) {
    made.results.prompts.push_back({fmt::format("{}", text), Protocol::prefill});
    for (std::size_t layer = 0; layer < methods[0][0].size(); ++layer) {
      HeadResult head{.place = {text, layer, 0}, .layer = step * static_cast<Index>(layer)};
      for (std::int32_t q = 0; q < 128; ++q) head.positions.push_back(q);
      made.results.heads.push_back(head);
    }
  }
  for (std::size_t m = 0; m < methods.size(); ++m) {
    made.with(fmt::format("m{}", m), constant(0));
    for (HeadResult& head : made.results.heads) {
      for (MetricRow& row : head.results.back().metrics) row.fill(methods[m][head.place.prompt][head.place.layer]);
    }
  }
  return made.rows();
}

}  // namespace

TEST_CASE("rows over some layers of a model are tested over layers: ratios by hand") {
  // log2 of the ratios: 0, 4, 5, 7. Mean 4, variance 26/3, of the mean 13/6; t_3 is 3.1824.
  const auto rows = rows_over(8, 2, {{{1, 1, 1, 1}}, {{1, 16, 32, 128}}});
  CHECK(rows[0].best == "m0");
  CHECK(rows[0].ratio_best == 1);
  CHECK(rows[1].ratio_best == Approx(16));
  CHECK(rows[1].ratio_best_interval.lo == Approx(std::exp2(4 - 3.182446 * std::sqrt(13. / 6))));
  CHECK(rows[1].ratio_best_interval.hi == Approx(std::exp2(4 + 3.182446 * std::sqrt(13. / 6))));
  CHECK(rows[0].geomean == 1);
  CHECK(rows[1].geomean == Approx(16));
  CHECK(rows[1].diff_best_interval.lo == Approx(rows[1].diff_best));  // all blocks are alike: certain for these layers
  CHECK(rows[1].tied == true);
  CHECK(rows[1].tested_over == "4 of 8 layers");
  CHECK(rows_over(8, 2, {{{1, 1, 1, 1}}, {{2, 4, 4, 4}}})[1].tied == false);
  // All layers of a model are units too, from five on; with fewer, blocks of queries decide for this text.
  const auto all = rows_over(5, 1, {{{1, 1, 1, 1, 1}}, {{2, 4, 4, 4, 4}}});
  CHECK(all[1].tied == false);
  CHECK(all[1].tested_over == "all 5 layers");
  CHECK(rows_over(4, 1, {{{1, 1, 1, 1}}, {{2, 4, 4, 4}}})[1].tested_over == "8 blocks of queries");
}

TEST_CASE("one layer, neighbours, and all layers of two texts are no sample of others: blocks are the units") {
  for (const auto& rows : {rows_over(8, 1, {{{1}}, {{2}}}), rows_over(8, 1, {{{1, 1, 1, 1}}, {{4, 4, 5, 4}}}),
                           rows_over(2, 1, {{{1, 1}, {1, 1}}, {{1, 2}, {2, 3}}})}) {
    CHECK(std::isnan(rows[1].ratio_best));
    CHECK(rows[1].tied == false);  // certain for these layers
    CHECK(rows[1].tested_over.ends_with(" blocks of queries"));
  }
}

TEST_CASE("with all layers of three texts, texts are the units") {
  // log2 of the ratios by text: 1, 2, 3. Mean 2, variance of the mean 1/3; t_2 is 4.302653.
  const auto all = rows_over(2, 1, {{{1, 1}, {1, 1}, {1, 1}}, {{2, 2}, {4, 4}, {8, 8}}});
  const Record& over_all = all[0].prompt == "all" ? all[1] : all[0];
  CHECK(over_all.ratio_best == Approx(4));
  CHECK(over_all.ratio_best_interval.lo == Approx(std::exp2(2 - 4.302653 / std::sqrt(3.))));
  CHECK(over_all.tied == true);
}

TEST_CASE("a row that is exact on a layer has no test in a group over layers, unless it may be the best") {
  const auto rows = rows_over(8, 2, {{{1, 1, 1, 1}}, {{4, 4, 5, 4}}, {{0, 9, 9, 9}}});
  CHECK(rows[1].tied == false);
  CHECK(rows[1].tested_over == "4 of 8 layers");
  CHECK(!rows[2].tied);
  CHECK(rows[2].tested_over.empty());
  CHECK(std::isnan(rows[2].ratio_best));
  const auto low = rows_over(8, 2, {{{1, 1, 1, 1}}, {{4, 4, 5, 4}}, {{0, 0.5, 0.5, 0.5}}});
  for (const Record& r : low) {
    CHECK(r.best == "m2");
    CHECK(std::isnan(r.ratio_best));
    CHECK(std::isnan(r.geomean));
  }
  CHECK(low[0].tested_over == "8 blocks of queries");
}

TEST_CASE("over layers the best is that of the geometric mean") {
  const auto rows = rows_over(8, 2, {{{1, 1, 1, 1}}, {{0.1f, 0.1f, 0.1f, 10}}});
  CHECK(rows[0].best == "m1");
  CHECK(rows[0].ratio_best == Approx(std::pow(100, 0.25)));
  CHECK(rows[0].diff_best < 0);
}

TEST_CASE("joined parts of a replay are marked like the whole replay") {
  Made made, first, second;
  made.with("a", constant(3)).with("b", constant(1));
  first.with("a", constant(3));
  second.with("b", constant(1));
  std::vector<Record> joined = summarize(first.results, Grain::trace);
  for (Record& r : summarize(second.results, Grain::trace)) joined.push_back(r);
  mark_best(joined, figure_named("rel_err"));
  const auto whole = made.rows();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(joined[i].best == whole[i].best);
    CHECK(joined[i].diff_best == whole[i].diff_best);
    CHECK(joined[i].tied == whole[i].tied);
  }
}

TEST_CASE("of methods with equal laws, none is distinguishable from the best, which is best by chance") {
  // 8 methods with equal laws on 24 blocks. At most 5 % of 200 traces have a row that is not tied: 10, with a standard
  // deviation of 3.
  int wrong = 0;
  for (std::uint32_t trace = 0; trace < 200; ++trace) {
    Made made(384);
    for (std::uint32_t method = 0; method < 8; ++method) {
      made.with(fmt::format("m{}", method), [&](std::size_t q, auto) {
        const PhiloxBlock words = philox4x32({{trace, method, static_cast<std::uint32_t>(q), 0}}, {1, 1});
        return static_cast<float>(uniform52(words.x[0], words.x[1]));
      });
    }
    bool any = false;
    for (const Record& r : made.rows()) any |= r.tied == false;
    wrong += any;
  }
  CHECK(wrong <= 19);
}
