// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/synth.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>
#include <kvbench/core/error.hpp>
#include <kvbench/trace/column_sums.hpp>
#include <kvbench/trace/patterns.hpp>
#include <kvbench/trace/sha256.hpp>

#include <unit/trace/sample.hpp>

namespace kvbench::trace::test {
namespace {

SynthOptions small(Pattern pattern) {
  SynthOptions options;
  options.pattern = pattern;
  options.num_tokens = 512;
  options.prompt_tokens = 448;
  options.num_queries = 64;
  options.layers = 1;
  options.query_heads = 2;
  options.kv_heads = 1;
  options.value_dim = 32;
  options.clusters = 8;
  options.seed = 7;
  return options;
}

/// All rows of the arrays of one head.
struct Drawn {
  std::vector<float> keys;
  std::vector<std::vector<float>> queries, speculated;
};
Drawn draw_head(const SynthOptions& options, Place place) {
  const SynthHead head(options, place);
  const Rows all{0, options.num_tokens};
  Drawn drawn{.keys = head.keys(all)};
  const std::int64_t group = options.query_heads / options.kv_heads;
  for (std::int64_t h = place.kv_head * group; h < (place.kv_head + 1) * group; ++h) {
    drawn.queries.push_back(head.queries(h, all));
    if (options.speculation_error) {
      drawn.speculated.push_back(head.guesses(h, all, drawn.queries.back(), *options.speculation_error));
    }
  }
  return drawn;
}

/// Attention of query row `i` (causal) over the keys, in fp64.
std::vector<double> attention(const std::vector<float>& keys, const std::vector<float>& queries, std::size_t i,
                              std::size_t d, double scale) {
  std::vector<double> weights(i + 1);
  for (std::size_t j = 0; j <= i; ++j) {
    double dot = 0;
    for (std::size_t c = 0; c < d; ++c) dot += double{queries[i * d + c]} * double{keys[j * d + c]};
    weights[j] = std::exp(dot * scale);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= total;
  return weights;
}

Backends backends_of(std::size_t threads) {
  Backends backends(threads);
  for (auto& backend : backends) backend = make_cpu_backend();
  return backends;
}

TEST_CASE("column sums of three tokens by hand") {
  // d = 1, scale = ln 2: weights are 2^(q k). Query 0 of head 0 reads key 0, query 1 weighs 2^1 : 2^2, query 2 weighs
  // 1 : 1 : 1; query 1 of head 1 weighs 1 : 1, query 2 weighs 2^1 : 2^2 : 1.
  const CausalQueries queries{.heads = 2,
                              .positions = {0, 1, 2},
                              .rows = [](auto, auto) { return std::vector<float>{5, 1, 0, 7, 0, 1}; },
                              .scale = std::log(2.0)};
  const auto sums = column_sums({1, 2, 0}, 1, queries, backends_of(1));
  const double expected[] = {1 + 1. / 3 + 1. / 3, 2. / 3 + 1. / 3, 1. / 3,
                             1 + 1. / 2 + 2. / 7, 1. / 2 + 4. / 7, 1. / 7};
  for (std::size_t j = 0; j < 6; ++j) CHECK(sums.at(j) == doctest::Approx(expected[j]).epsilon(1e-6));
}

TEST_CASE("column sums agree with attention in fp64, over several blocks of queries, weighted or not") {
  const TempFolder folder;
  SynthOptions options = small(Pattern::gaussian);
  options.num_tokens = options.num_queries = 2011;
  options.prompt_tokens = 1999;
  options.query_heads = 4;
  options.kv_heads = 2;
  options.head_dim = 6;
  options.key_norm = 3;
  for (const std::int64_t count : {0, 7, 1998}) {
    options.column_queries = count;
    options.dtype = count == 0 ? Dtype::f32 : Dtype::f16;
    double between = 0;  // progress within a kv head: there are several blocks
    synthesize(folder / "one.h5", options,
               {.threads = 1, .progress = [&](double done, std::int64_t) { between += done != std::floor(done); }});
    CHECK((between >= 4) == (count != 7));
    synthesize(folder / "three.h5", options, {.threads = 3});
    const Reader one(folder / "one.h5"), three(folder / "three.h5");
    CHECK(contains(one.info().source_version, count == 0 ? "isa=" : "column_queries="));
    const auto stored = [](const Reader& reader, Array array, std::int64_t head) {
      return reader.read_head(reader.info().prompts[0], reader.info().prompts[0].layers[0], array, head);
    };
    for (std::int64_t head = 0; head < 4; ++head) {
      const std::vector<float> keys = stored(one, Array::keys, head / 2), queries = stored(one, Array::queries, head),
                               sums = stored(one, Array::column_sums, head);
      CHECK(sums == stored(three, Array::column_sums, head));
      std::vector<double> expected(2011);
      const std::int64_t parts = count == 0 ? 1999 : count;
      for (std::int64_t part = 1; part <= parts; ++part) {  // the last query of a part counts for all of it
        const auto weights =
            attention(keys, queries, static_cast<std::size_t>(part * 1999 / parts - 1), 6, 1 / std::sqrt(6));
        for (std::size_t j = 0; j < weights.size(); ++j) expected[j] += weights[j] * 1999 / static_cast<double>(parts);
      }
      double worst = 0;
      for (std::size_t j = 0; j < 2011; ++j)
        worst = std::max(worst, std::abs(sums.at(j) - expected[j]) / std::max(expected[j], 1e-9));
      CHECK(worst < 1e-5);
    }
  }
}

TEST_CASE("queries with more logits than a block holds are taken one by one") {
  constexpr std::int64_t n = 1 << 19;
  CausalQueries queries{.heads = 16, .positions = {0, 99, n / 2, n / 2 + 1, n - 9}, .scale = 1};
  queries.rows = [](std::size_t begin, std::size_t end) { return std::vector<float>(16 * (end - begin), 1); };
  std::atomic<int> steps = 0;
  const auto sums = column_sums(std::vector<float>(n), 1, queries, backends_of(3), [&](double) { ++steps; });

  CHECK(steps == 4);  // the first two queries are a block
  for (const std::int64_t key : std::vector<std::int64_t>{0, 1, 99, 100, n / 2 + 1, n / 2 + 2, n - 9, n - 8}) {
    double expected = 0;  // keys of zeros get equal weights
    for (const std::int64_t p : queries.positions) expected += key <= p ? 1 / static_cast<double>(p + 1) : 0;
    CHECK(sums.at(static_cast<std::size_t>(15 * n + key)) == doctest::Approx(expected).epsilon(1e-5));
  }
  CHECK(sums == column_sums(std::vector<float>(n), 1, queries, backends_of(1)));
}

TEST_CASE("rows do not depend on the blocks in which they are generated") {
  const SynthOptions options = small(Pattern::clusters);
  const SynthHead head(options, {0, 0, 0});
  std::vector<float> parts = head.values({0, 5});
  const std::vector<float> rest = head.values({5, 512});
  parts.insert(parts.end(), rest.begin(), rest.end());

  CHECK(parts == head.values({0, 512}));
  CHECK(head.guesses(1, {3, 5}, head.queries(1, {3, 5}), 0.5) == std::vector<float>([&] {
          const std::vector<float> all = head.guesses(1, {0, 8}, head.queries(1, {0, 8}), 0.5);
          return std::vector<float>(all.begin() + 3 * 64, all.begin() + 5 * 64);
        }()));
}

TEST_CASE("any number of threads writes the same bytes, and a run can be watched and stopped") {
  const TempFolder folder;
  SynthOptions options = small(Pattern::sinks);
  options.layers = 2;
  ::setenv("SOURCE_DATE_EPOCH", "86400", 1);  // a trace has the time of its creation, in seconds
  for (const bool sums : {true, false}) {
    options.column_sums = sums;
    synthesize(folder / "one.h5", options, {.threads = 1});
    std::atomic<double> most = 0, all = 0;
    synthesize(folder / "three.h5", options, {.threads = 3, .progress = [&](double done, std::int64_t total) {
                                                if (done > most) most = done;
                                                all = static_cast<double>(total);
                                              }});
    CHECK(sha256_of_file(folder / "one.h5") == sha256_of_file(folder / "three.h5"));
    CHECK(most == static_cast<double>(options.layers * options.query_heads));
    CHECK(all == most);
    const std::atomic<bool> stop = true;
    CHECK_THROWS_AS(synthesize(folder / "never.h5", options, {.stop = &stop}), Interrupted);
    CHECK_FALSE(std::filesystem::exists(folder / "never.h5"));
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
}

TEST_CASE("every pattern gives a readable trace with the declared parts") {
  const TempFolder folder;
  for (const Pattern pattern :
       {Pattern::gaussian, Pattern::clusters, Pattern::sinks, Pattern::heavy_hitters, Pattern::needle}) {
    SynthOptions options = small(pattern);
    options.dtype = Dtype::f16;
    options.compress = true;
    options.prompts = 2;
    synthesize(folder / "t.h5", options);

    const Reader reader(folder / "t.h5");
    const PromptInfo& prompt = reader.info().prompts.at(1);
    const std::vector<float> sums = reader.read_head(prompt, prompt.layers[0], Array::column_sums, 1);

    CHECK(reader.info().rope_type == "none");
    CHECK(prompt.layers[0].query_positions.front() == 448);
    CHECK(prompt.layers[0].query_positions.back() == 511);
    CHECK(reader.read_head(prompt, prompt.layers[0], Array::values, 0).size() == 512 * 32);
    CHECK(std::accumulate(sums.begin(), sums.end(), 0.0) == doctest::Approx(448).epsilon(1e-4));
  }
}

TEST_CASE("compressed chunks are not padded to pages") {
  const TempFolder folder;
  SynthOptions options = small(Pattern::gaussian);
  options.dtype = Dtype::f16;
  options.kv_heads = options.query_heads = 64;
  options.head_dim = options.value_dim =
      8;  // a head of 8192 bytes, which deflates to less than 8192 and more than 4096
  synthesize(folder / "plain.h5", options);
  options.compress = true;
  synthesize(folder / "packed.h5", options);

  CHECK(std::filesystem::file_size(folder / "packed.h5") * 100 < std::filesystem::file_size(folder / "plain.h5") * 97);
}

TEST_CASE("seeds, prompts, layers and heads give different arrays") {
  const SynthOptions options = small(Pattern::gaussian);
  SynthOptions reseeded = options;
  reseeded.seed = 8;
  const std::vector<float> keys = draw_head(options, {}).keys;

  CHECK(keys == draw_head(options, {}).keys);
  CHECK(keys != draw_head(reseeded, {}).keys);
  CHECK(keys != draw_head(options, {1, 0, 0}).keys);
  CHECK(keys != draw_head(options, {0, 1, 0}).keys);
  CHECK(keys != draw_head(options, {0, 0, 1}).keys);
  const Drawn head = draw_head(options, {});
  CHECK(head.queries[0] != head.queries[1]);
  CHECK(head.queries[0] != head.keys);
}

TEST_CASE("speculated queries have the requested error and change no other array") {
  const TempFolder folder;
  SynthOptions options = small(Pattern::sinks);
  options.layers = 2;
  const Drawn plain = draw_head(options, {0, 1, 0});
  options.speculation_error = 0.25;
  const Drawn head = draw_head(options, {0, 1, 0});
  CHECK(plain.speculated.empty());
  CHECK(head.keys == plain.keys);
  CHECK(head.queries == plain.queries);
  double squares = 0;
  for (std::size_t i = 0; i < head.queries[1].size(); ++i)
    squares += std::pow(double{head.speculated[1][i]} - head.queries[1][i], 2);
  CHECK(std::sqrt(squares / 512) == doctest::Approx(0.25 * 8).epsilon(0.02));
  CHECK(head.speculated[0] != head.speculated[1]);

  synthesize(folder / "t.h5", options);
  const Reader reader(folder / "t.h5");
  const PromptInfo& prompt = reader.info().prompts[0];
  const std::vector<float> stored = reader.read_head(prompt, prompt.layers[1], Array::speculated_queries, 1);
  CHECK(prompt.layers[0].speculated_queries);
  CHECK(stored == std::vector<float>(head.speculated[1].end() - 64 * 64, head.speculated[1].end()));
  CHECK(contains(reader.info().source_version, "speculated=0.25"));
}

TEST_CASE("keys have the requested norm") {
  const std::vector<float> keys = draw_head(small(Pattern::gaussian), {}).keys;
  const double squares = std::inner_product(keys.begin(), keys.end(), keys.begin(), 0.0);
  CHECK(std::sqrt(squares / 512) == doctest::Approx(8).epsilon(0.02));  // 32768 draws: standard error 0.4 %
}

TEST_CASE("marked tokens get most of the attention") {
  const auto mass = [](Pattern pattern, std::size_t query, std::size_t tokens) {
    const Drawn head = draw_head(small(pattern), {});
    std::vector<double> weights = attention(head.keys, head.queries[0], query, 64, 0.125);
    if (pattern == Pattern::sinks) return std::accumulate(weights.begin(), weights.begin() + 4, 0.0);
    if (pattern == Pattern::needle) return weights[224];
    std::sort(weights.rbegin(), weights.rend());
    return std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(tokens), 0.0);
  };
  for (const std::size_t query : {505U, 511U}) {
    CAPTURE(query);
    CHECK(mass(Pattern::sinks, query, 4) > 0.4);
    CHECK(mass(Pattern::needle, query, 1) > 0.4);
    CHECK(mass(Pattern::heavy_hitters, query, 8) > 0.4);
    CHECK(mass(Pattern::gaussian, query, 8) < 0.3);
  }
  CHECK(mass(Pattern::needle, 400, 1) < 0.2);  // earlier queries attend to other tokens
}

TEST_CASE("clustered keys are closer to their centre than the centres to each other") {
  SynthOptions options = small(Pattern::clusters);
  options.spread = 0;
  std::vector<std::vector<float>> centres;
  const std::vector<float> keys = draw_head(options, {}).keys;
  for (std::size_t i = 0; i < 512; ++i)
    centres.emplace_back(keys.begin() + static_cast<std::ptrdiff_t>(i * 64),
                         keys.begin() + static_cast<std::ptrdiff_t>(i * 64 + 64));
  options.spread = 0.3;
  const std::vector<float> scattered = draw_head(options, {}).keys;
  double squares = 0;
  for (std::size_t i = 0; i < scattered.size(); ++i) squares += std::pow(double{scattered[i]} - double{keys[i]}, 2);
  std::sort(centres.begin(), centres.end());
  centres.erase(std::unique(centres.begin(), centres.end()), centres.end());

  CHECK(centres.size() == 8);
  CHECK(std::sqrt(squares / 512) == doctest::Approx(0.3 * std::sqrt(2) * 8).epsilon(0.02));
}

TEST_CASE("errors for inconsistent options name the field") {
  const auto complain = [](auto change) {
    SynthOptions options = small(Pattern::gaussian);
    change(options);
    return message_of<Error>([&] { synthesize("/nonexistent/t.h5", options); });
  };
  CHECK(contains(complain([](SynthOptions& o) { o.prompt_tokens = 513; }), "`prompt_tokens` is 513"));
  CHECK(contains(complain([](SynthOptions& o) { o.num_queries = 0; }), "`num_queries` is 0"));
  CHECK(contains(complain([](SynthOptions& o) {
                   o.query_heads = 3;
                   o.kv_heads = 2;
                 }),
                 "not a multiple of `kv_heads`"));
  CHECK(contains(complain([](SynthOptions& o) { o.column_queries = -1; }), "`column_queries` is -1"));
  CHECK(contains(complain([](SynthOptions& o) { o.spread = -1; }), "`spread`"));
  for (const double huge : {1e30, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK(contains(complain([&](SynthOptions& o) { o.spread = huge; }), "`spread` is"));
    CHECK(contains(complain([&](SynthOptions& o) { o.key_norm = huge; }), "`key_norm` is"));
    CHECK(contains(complain([&](SynthOptions& o) { o.speculation_error = huge; }), "`speculation_error` is"));
  }
  for (const double small : {0.0, 1e-45, 1e-7})
    CHECK(contains(complain([&](SynthOptions& o) { o.key_norm = small; }), "`key_norm`"));
  CHECK(contains(complain([](SynthOptions& o) { o.speculation_error = -1; }), "`speculation_error`"));
}

}  // namespace
}  // namespace kvbench::trace::test
