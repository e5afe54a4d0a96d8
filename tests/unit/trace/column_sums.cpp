// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/column_sums.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>
#include <kvbench/core/error.hpp>
#include <kvbench/trace/synth.hpp>

#include <unit/trace/sample.hpp>

namespace kvbench::trace::test {
namespace {

Backends backends_of(std::size_t threads) {
  Backends backends(threads);
  for (auto& backend : backends) backend = make_cpu_backend();
  return backends;
}

TEST_CASE("column sums of three tokens and two query heads by hand") {
  // d = 1, scale = ln 2: weights are 2^(q k). Head 0: query 0 reads key 0; query 1 weighs 2^1 : 2^2; query 2 weighs
  // 1 : 1 : 1. Head 1: query 1 weighs 1 : 1; query 2 weighs 2^1 : 2^2 : 1.
  const std::vector<std::vector<float>> heads = {{5, 1, 0}, {7, 0, 1}};
  const auto sums_at = [&](std::vector<std::int64_t> positions) {
    CausalQueries queries{.heads = 2, .positions = positions, .rows = {}, .scale = std::log(2.0)};
    queries.rows = [&](std::size_t begin, std::size_t end) {
      std::vector<float> rows;
      for (const auto& head : heads)
        for (std::size_t i = begin; i < end; ++i) rows.push_back(head[static_cast<std::size_t>(positions[i])]);
      return rows;
    };
    return column_sums({1, 2, 0}, 1, queries, backends_of(1));
  };
  const auto near = [](const std::vector<double>& sums, const std::vector<double>& expected) {
    REQUIRE(sums.size() == expected.size());
    for (std::size_t j = 0; j < sums.size(); ++j) CHECK(sums[j] == doctest::Approx(expected[j]).epsilon(1e-6));
  };

  near(sums_at({0, 1, 2}),
       {1 + 1. / 3 + 1. / 3, 2. / 3 + 1. / 3, 1. / 3, 1 + 1. / 2 + 2. / 7, 1. / 2 + 4. / 7, 1. / 7});
  near(sums_at({1}), {1. / 3, 2. / 3, 0, 1. / 2, 1. / 2, 0});
}

/// Column sums of a query head of a trace that has all queries, by a serial loop in fp64: of every query of the
/// context, or of the last of each of `count` equal parts, counted as often as a part has queries.
std::vector<double> serial_sums(const Reader& reader, std::int64_t head, std::int64_t context, std::int64_t count) {
  const PromptInfo& prompt = reader.info().prompts[0];
  const LayerInfo& layer = prompt.layers[0];
  const auto d = static_cast<std::size_t>(reader.info().head_dim);
  const std::vector<float> keys = reader.read_head(prompt, layer, Array::keys, head / 2),
                           queries = reader.read_head(prompt, layer, Array::queries, head);
  std::vector<double> sums(static_cast<std::size_t>(prompt.num_tokens)), weights(sums.size());
  for (std::int64_t part = 1; part <= (count == 0 ? context : count); ++part) {
    const auto i = static_cast<std::size_t>(count == 0 ? part : part * context / count) - 1;
    double total = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (std::size_t c = 0; c < d; ++c) dot += double{queries[i * d + c]} * double{keys[j * d + c]};
      total += weights[j] = std::exp(dot * layer.scale);
    }
    const double times = count == 0 ? 1 : static_cast<double>(context) / static_cast<double>(count);
    for (std::size_t j = 0; j <= i; ++j) sums[j] += times * weights[j] / total;
  }
  return sums;
}

TEST_CASE("column sums of a trace agree with fp64, over several blocks of queries, weighted or not, in fp32 or f16") {
  const TempFolder folder;
  SynthOptions options{.num_tokens = 2011,
                       .prompt_tokens = 1999,
                       .num_queries = 2011,
                       .layers = 1,
                       .query_heads = 4,
                       .kv_heads = 2,
                       .head_dim = 6,
                       .value_dim = 2,
                       .key_norm = 3};
  for (const Dtype dtype : {Dtype::f32, Dtype::f16}) {
    for (const std::int64_t count : {0, 7, 1998}) {
      CAPTURE(count);
      options.dtype = dtype;
      options.column_queries = count;
      std::vector<double> shares;
      synthesize(folder / "one.h5", options,
                 {.threads = 1, .progress = [&](double done, std::int64_t) { shares.push_back(done); }});
      synthesize(folder / "three.h5", options, {.threads = 3});
      CHECK(std::ranges::is_sorted(shares));
      // Each kv head ends blocks before its last one.
      if (count != 7) CHECK(std::ranges::count_if(shares, [](double x) { return x != std::floor(x); }) >= 4);

      const Reader one(folder / "one.h5"), three(folder / "three.h5");
      const std::string& version = one.info().source_version;
      CHECK(contains(version, "column_queries=") == (count > 0));
      CHECK(contains(version, "isa=" + std::string(name_of(best_isa()))));
      for (std::int64_t head = 0; head < 4; ++head) {
        const auto stored = [&](const Reader& reader) {
          return reader.read_head(reader.info().prompts[0], reader.info().prompts[0].layers[0], Array::column_sums,
                                  head);
        };
        const std::vector<float> sums = stored(one);
        const std::vector<double> expected = serial_sums(one, head, 1999, count);
        CHECK(sums == stored(three));
        REQUIRE(sums.size() == expected.size());
        double worst = 0;
        for (std::size_t j = 0; j < sums.size(); ++j)
          worst = std::max(worst, std::abs(sums[j] - expected[j]) / std::max(expected[j], 1e-9));
        CHECK(worst < 1e-5);
        CHECK(std::accumulate(sums.begin(), sums.end(), 0.0) == doctest::Approx(1999).epsilon(1e-6));
        CHECK(sums[1999] == 0);
      }
    }
  }
}

TEST_CASE("queries of more tokens than a block of logits holds are taken one by one") {
  // Keys of zeros get equal weights: the query at p gives 1 / (p + 1) to each key that it sees.
  constexpr std::int64_t n = 1 << 19, heads = 16;
  CausalQueries queries{.heads = heads, .positions = {0, 99, n / 2, n / 2 + 1, n - 9}, .rows = {}, .scale = 1};
  queries.rows = [](std::size_t begin, std::size_t end) { return std::vector<float>(heads * (end - begin), 1); };
  std::atomic<int> steps = 0;
  const auto sums = column_sums(std::vector<float>(n), 1, queries, backends_of(3), [&](double) { ++steps; });

  CHECK(steps == 4);  // the first two queries are a block
  REQUIRE(sums.size() == heads * n);
  for (const std::int64_t key : std::vector<std::int64_t>{0, 1, 99, 100, n / 2, n / 2 + 1, n / 2 + 2, n - 9, n - 8}) {
    CAPTURE(key);
    double expected = 0;
    for (const std::int64_t p : queries.positions) expected += key <= p ? 1 / static_cast<double>(p + 1) : 0;
    for (const std::int64_t head : {std::int64_t{0}, heads - 1})
      CHECK(sums[static_cast<std::size_t>(head * n + key)] == doctest::Approx(expected).epsilon(1e-5));
  }
  CHECK(sums == column_sums(std::vector<float>(n), 1, queries, backends_of(1)));
  CHECK_THROWS_AS(column_sums({0}, 1, {.positions = {0}, .rows = queries.rows}, backends_of(1),
                              [](double) { throw Interrupted(); }),
                  Interrupted);
}

}  // namespace
}  // namespace kvbench::trace::test
