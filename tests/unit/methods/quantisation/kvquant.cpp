// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/quantisation/lloyd_max.hpp>
#include <kvbench/methods/quantisation/outliers.hpp>
#include <kvbench/session/session.hpp>

#include "coded_rows.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Rows of two channels turned by their tokens: RoPE turns the only pair by one radian a token.
Floats turned_pairs(const Floats& rows, const std::vector<std::int32_t>& tokens) {
  Floats out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double x = rows[2 * i], y = rows[2 * i + 1], a = tokens[i];
    out.push_back(static_cast<float>(x * std::cos(a) - y * std::sin(a)));
    out.push_back(static_cast<float>(x * std::sin(a) + y * std::cos(a)));
  }
  return out;
}

/// Heads of a layer with 2 channels of values, and of keys that are all 0 where none are given.
std::vector<HeadPrompt> kvquant_heads(const std::vector<Floats>& values, const Floats& keys = {}) {
  std::vector<HeadPrompt> heads;
  for (std::size_t h = 0; h < values.size(); ++h) {
    HeadPrompt head = coded_prompt(values[h], 2);
    head.head = KvHeadId(static_cast<Index>(h));
    head.num_kv_heads = std::ssize(values);
    head.rope = Rope{};
    head.keys = ref().adopt(keys.empty() ? Floats(values[h].size(), 0) : keys, head.values.rows(), 2);
    heads.push_back(head);
  }
  return heads;
}
void calibrate(std::vector<HeadPrompt>& heads, const std::vector<HeadPrompt>& text) {
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h].calibration = std::make_shared<const HeadPrompt>(text[h]);
}

std::vector<Codecs> kvquant_codecs_of(const std::vector<HeadPrompt>& heads, std::vector<Assignment> settings,
                                      Backend& backend = ref()) {
  const MethodInfo& info = find_method("kvquant-nofisher");
  return info.quantiser.layer_codecs(heads, info.bind(settings), 0, 0, backend);
}

void check_near(const Floats& got, const Floats& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(2e-6));
}

/// Two heads whose values are 0 3 | 5 100 and 7 7 | 7 7, calibrated on -8 -1 | 1 8.
std::vector<HeadPrompt> two_heads() {
  std::vector<HeadPrompt> heads = kvquant_heads({{0, 3, 7, 7}, {5, 100, 7, 7}});
  calibrate(heads, kvquant_heads({{-8, -1}, {1, 8}}));
  return heads;
}

}  // namespace

TEST_CASE("percentiles lie between the two nearest numbers; the median takes the place of outliers") {
  // Place 0.005 * 4 = 0.02 of five numbers, and 3.98 from the other end.
  Floats numbers = {30, 0, 10, 40, 20};
  const OutlierBounds bounds = outlier_bounds(numbers);
  CHECK(bounds.lower == doctest::Approx(0.2));
  CHECK(bounds.upper == doctest::Approx(39.8));
  // 0 and 40 are outliers, so that 10 to 30 remain.
  const ValueRange range = range_of_token(numbers);
  CHECK(range.offset == 20);
  CHECK(range.scale == 10);
  // Of two numbers, both are outliers; the median is the smaller one.
  Floats two = {6, -2};
  CHECK(range_of_token(two).offset == -2);
  CHECK(range_of_token(two).scale == 0);
}

TEST_CASE("a codebook is fitted by k-means from the medians of equal parts") {
  // Levels 0 and 2 part the numbers at 1: {0}, {1, 2, 10}. Means 0 and 13/3 part them at 13/6: {0, 1, 2}, {10}.
  const Codebook two = fitted_codebook({10, 2, 0, 1}, 1);
  CHECK(two.levels == Floats{1, 10});
  CHECK(two.midpoints == Floats{5.5});
  // 0 to 199 start at 49 and 149, which part them at 99: 0 to 98 and 99 to 199 have these means.
  Floats many(200);
  std::iota(many.begin(), many.end(), 0.0f);
  CHECK(fitted_codebook(many, 1).levels == Floats{49, 149});
  // Two numbers for four levels: parts without numbers take the next one.
  CHECK(fitted_codebook({-1, 3}, 2).levels == Floats{-1, -1, 3, 3});
  CHECK(fitted_codebook({}, 2).levels == Floats{0, 0, 0, 0});
}

// Both channels of the text have the keys -1, -0.5, 0.5 and 1 before RoPE: the percentiles are -1 + 0.015 / 2 and its
// opposite, +-0.99267578 in f16. -0.5 and 0.5 remain, and every level is at one of them.
TEST_CASE("kvquant-nofisher: keys before RoPE by hand") {
  std::vector<HeadPrompt> heads = kvquant_heads({{0, 0}});
  const Floats text = turned_pairs({-1, 0.5, -0.5, 1, 0.5, -1, 1, -0.5}, {0, 1, 2, 3});
  calibrate(heads, kvquant_heads({Floats(8, 0)}, text));
  const Codecs codecs = kvquant_codecs_of(heads, {{"bits", "2"}}).front();
  // 1.0002 and -1.5 are beyond the thresholds, and stored in f16.
  const std::vector<std::int32_t> tokens = {5, 0, 3};
  const Floats rows = turned_pairs({0.1f, -0.7f, 1.0002f, -0.3f, 0.9926f, -1.5f}, tokens);
  const auto got = codecs.keys->decoded_at(ref().adopt(rows, 3, 2), tokens, ref());
  check_near(ref().read(got), turned_pairs({0.5, -0.5, 1, -0.5, 0.5, -1.5}, tokens));
  CHECK_THROWS_WITH_AS(codecs.keys->decoded_at(ref().adopt(Floats{1, 1}, 1, 2), std::vector{-1}, ref()),
                       doctest::Contains("such as means"), Unavailable);
}

// The text has percentiles -+(8 - 0.015 * 7) = -+7.895, so that the levels are at -+1 / 7.895 = -+0.126662. Of 0, 3, 5
// and 100 the ends are outliers, and 3 to 5 is offset 4, scale 1. Of 7, 7, 7 and 7 all are.
TEST_CASE("kvquant-nofisher: values of a token in all heads by hand") {
  const std::vector<Codecs> codecs = kvquant_codecs_of(two_heads(), {{"bits", "2"}});
  check_near(decoded(*codecs[0].values, {0, 3, 7, 7}, 2), {0, 3.873338f, 7, 7});
  check_near(decoded(*codecs[1].values, {5, 100, 7, 7}, 2), {4.126662f, 100, 7, 7});
  const std::vector<Codecs> first = kvquant_codecs_of(two_heads(), {{"bits", "2"}, {"first", "true"}});
  check_near(decoded(*first[0].values, {0, 3, 7, 7}, 2), {0, 3, 7, 7});
}

TEST_CASE("kvquant-nofisher: values of a decoded token have the range of all heads too") {
  const std::vector<HeadPrompt> heads = two_heads();
  const MethodInfo& info = find_method("kvquant-nofisher");
  Session session(info.prepare(heads, info.bind(std::vector<Assignment>{{"bits", "2"}}), ref())(1, 0), 2, false, ref());
  const auto block = [&](const Floats& values) {
    return TokenBlock{.first = 2, .keys = ref().adopt(Floats{0, 0}, 1, 2), .values = ref().adopt(Floats(values), 1, 2)};
  };
  REQUIRE(session.append(std::vector{block({10, 13}), block({15, 110})}) == 1);
  const auto tables = session.entries(std::vector<QueryBlock>(2, {.positions = {2}}));
  const std::vector<Floats> expected = {{0, 3.873338f, 7, 7, 10, 13.873338f}, {4.126662f, 100, 7, 7, 14.126662f, 110}};
  for (std::size_t h = 0; h < 2; ++h) {
    Floats got;
    for (const EntryTable& table : tables[h])
      for (const float x : ref().read(table.own_values)) got.push_back(x);
    check_near(got, expected[h]);
  }
}

// Codes of 2 bits for 2 channels of 2 tokens. Outliers of the values: 0, 7, 7 | 100, 7, 7, of 4 bytes. Once for the
// layer: 3 row pointers, 4 levels in fp32, an offset and a scale for each token. All keys are 0, and so are their two
// thresholds, which none exceeds.
TEST_CASE("kvquant-nofisher: bytes by hand") {
  const std::vector<std::int32_t> tokens = {0, 1};
  const std::vector<Codecs> codecs = kvquant_codecs_of(two_heads(), {{"bits", "2"}});
  CHECK(bytes_of(codecs[0].values->footprint(2, 2)) == 1);
  CHECK(bytes_of(codecs[0].values->extras(tokens)) == 3 * 4 + 3 * 4 + 4 * 4 + 2 * 4);
  CHECK(bytes_of(codecs[1].values->extras(tokens)) == 3 * 4);
  CHECK(bytes_of(codecs[0].keys->extras(tokens)) == 3 * 4 + 4 * 4 + 2 * 2 * 2);
  CHECK(bytes_of(codecs[1].keys->extras(tokens)) == 2 * 2 * 2);
  // The first token has no outliers, but 2 numbers of 16 bits.
  const std::vector<Codecs> first = kvquant_codecs_of(two_heads(), {{"bits", "2"}, {"first", "true"}});
  CHECK(bytes_of(first[1].values->extras(tokens)) == 2 * 4 + 2 * 2);
}

TEST_CASE("kvquant-nofisher: what is refused") {
  std::vector<HeadPrompt> heads = two_heads();
  const auto refused = [&](const std::vector<HeadPrompt>& of, const char* reason) {
    CHECK_THROWS_WITH_AS(kvquant_codecs_of(of, {}), doctest::Contains(reason), Unavailable);
  };
  refused({heads[0]}, "all 2 kv heads");
  std::vector<HeadPrompt> scaled = heads;
  scaled[1].rope.reset();
  refused(scaled, "no unscaled RoPE");
  std::vector<HeadPrompt> empty = heads;
  for (HeadPrompt& head : empty) head.keys = head.keys.slice(0, 0), head.values = head.values.slice(0, 0);
  CHECK_NOTHROW(kvquant_codecs_of(empty, {}));
  for (HeadPrompt& head : empty) head.calibration.reset();
  refused(empty, "--calibrate");
  const MethodInfo& info = find_method("kvquant-nofisher");
  CHECK_THROWS_WITH_AS(info.bind(std::vector<Assignment>{{"bits", "1"}}), doctest::Contains("'bits' is 1"), Error);
  const MethodInfo both = compose(find_method("snapkv"), info);
  CHECK(both.calibrates_on == CalibratesOn::text);
  CHECK(both.whole_context);
}

// Random numbers are uniform in (-2, 2). Then the levels are nearly equal steps of 2 / 2^bits of the range, and no
// number is much further than half a step from one.
TEST_CASE("kvquant-nofisher: errors, monotony and equal bits on both back ends") {
  const Index n = 400, d = 8;
  const std::vector<std::int32_t> unturned(static_cast<std::size_t>(n), 0);
  std::vector<double> errors;
  for (const int bits : {2, 3, 4}) {
    std::vector<Floats> results;
    for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
      std::vector<HeadPrompt> heads;
      for (std::uint32_t h = 0; h < 3; ++h) {
        heads.push_back(prompt_of(random_head({.n = n, .decoded = 1, .d = d, .dv = d}, h, *backend), *backend));
        heads.back().num_kv_heads = 3;
      }
      const auto codecs = kvquant_codecs_of(heads, {{"bits", std::to_string(bits)}}, *backend);
      const Floats numbers = random_numbers(n * d, 9, 5);
      const Floats keys =
          backend->read(codecs[1].keys->decoded_at(backend->adopt(Floats(numbers), n, d), unturned, *backend));
      for (Index c = 0; c < d; ++c) {
        std::vector<std::size_t> order(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i * d + static_cast<std::size_t>(c);
        std::ranges::sort(order, {}, [&](std::size_t i) { return numbers[i]; });
        for (std::size_t k = 1; k < order.size(); ++k) CHECK(keys[order[k - 1]] <= keys[order[k]]);
      }
      const Floats again =
          backend->read(codecs[1].keys->decoded_at(backend->adopt(Floats(keys), n, d), unturned, *backend));
      CHECK(again == keys);
      double squares = 0, largest = 0;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const double error = std::fabs(double{keys[i]} - numbers[i]);
        squares += error * error, largest = std::max(largest, error);
      }
      CHECK(largest <= 1.3 * 2 / (1 << bits));
      errors.push_back(squares);
      const Floats values = backend->read(heads[2].values),
                   got = backend->read(codecs[2].values->decoded(heads[2].values, *backend));
      check_monotonic(values, got, d);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - values[i]) <= 1.3 * 2 / (1 << bits));
      results.push_back(backend->read(codecs[0].keys->decoded(heads[0].keys, *backend)));
      results.push_back(got);
    }
    CHECK(results[0] == results[2]);
    CHECK(results[1] == results[3]);
  }
  CHECK(errors[0] > 2 * errors[2]);
  CHECK(errors[2] > 2 * errors[4]);
}
