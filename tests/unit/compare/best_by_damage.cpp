// SPDX-License-Identifier: Apache-2.0
// Rows that are ranked by what their errors do to the output of the model.
#include <kvbench/compare/best.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/replay/records/figures.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using doctest::Approx;

namespace {

/// A row over all layers of texts with four probes and one scored token each, in which c of each probe is `c` of the
/// text; an error of `error` everywhere, and 16 blocks.
Record predicted(const std::string& method, const std::vector<double>& c, float error) {
  Record r;
  r.method = method, r.prompt = "all", r.model_layers = 1, r.replayed_layers = r.compressed_layers = {0};
  r.metrics[Metric::rel_err].mean = error;
  TestedSums& errors = r.tested[Metric::rel_err];
  errors.sums = errors.log_sums = {
      .seeds = 1, .blocks = std::vector<double>(16, error), .block_counts = std::vector<double>(16, 1)};
  r.blocks = 16;
  for (std::size_t text = 0; text < c.size(); ++text) {
    errors.places.push_back({text, 0, error, 1});
    ProbeSums sums{.scored = 1, .layers = 1, .seeds = 1, .probes = 4};
    for (const double jitter : {0.9, 1.0, 1.1, 1.2}) sums.sums.push_back(c[text] * jitter);
    r.probes.push_back(std::move(sums));
  }
  r.kl = predict_kl(r.probes, r.probed);
  return r;
}

/// 1/4 of the sum of the squares of .9, 1, 1.1 and 1.2, halved: the prediction of a text with c = 1.
constexpr double of_one = (0.81 + 1 + 1.21 + 1.44) / 8;

}  // namespace

// c of a is 0.2 and of b 0.1 on each text: KL differs by a factor of 4. Errors say the opposite.
TEST_CASE("rows that all have a predicted KL are ranked by it, over texts where there are three") {
  std::vector<Record> rows = {predicted("a", {0.2, 0.2, 0.4}, 1), predicted("b", {0.1, 0.1, 0.2}, 2),
                              predicted("exact", {0, 0, 0}, 0)};
  mark_best(rows);
  for (const Record& row : rows) CHECK(row.ranked_by == figure_named("kl_predicted"));
  CHECK(rows[0].best == "b");
  CHECK(rows[0].tied == false);
  CHECK(rows[0].ratio_best == Approx(4));
  CHECK(rows[0].ratio_best_interval.lo == Approx(4));
  CHECK(rows[0].tested_over == "3 texts");
  CHECK(rows[1].geomean == Approx(of_one * 0.01 * std::cbrt(4)));
  CHECK(rows[0].diff_best == Approx(of_one * (0.04 + 0.04 + 0.16 - 0.01 - 0.01 - 0.04) / 3));
  CHECK(rows[2].best.empty());
}

TEST_CASE("the figure that ranks rows can be chosen; without it a row is not ranked, and with one such row none is") {
  std::vector<Record> rows = {predicted("a", {0.2, 0.2, 0.4}, 1), predicted("b", {0.1, 0.1, 0.2}, 2)};
  std::vector<Record> by_error = rows;
  mark_best(by_error, figure_named("rel_err"));
  CHECK(by_error[1].best == "a");
  CHECK(by_error[1].ranked_by == figure_named("rel_err"));
  rows.push_back(predicted("c", {0.1, 0.1, 0.2}, 3));
  rows[2].probes.clear(), rows[2].kl = {};
  std::vector<Record> chosen = rows;
  mark_best(rows);
  CHECK(rows[0].best == "a");
  CHECK(rows[0].ranked_by == figure_named("rel_err"));
  mark_best(chosen, figure_named("kl_predicted"));
  CHECK(chosen[0].best == "b");
  CHECK(chosen[2].best.empty());
}

// b has the lower prediction, and a layer whose errors say that it is none.
TEST_CASE("rows outside the region of predictions are not ranked by them, and are by other figures") {
  std::vector<Record> rows = {predicted("a", {0.2, 0.2, 0.4}, 1), predicted("b", {0.1, 0.1, 0.2}, 2),
                              predicted("c", {0.3, 0.3, 0.3}, 3)};
  rows[1].kl.outside = "layer 0, error 0.64 of the stream";
  std::vector<Record> by_error = rows;
  mark_best(rows);
  CHECK(rows[0].best == "a");
  CHECK(rows[2].best == "a");
  CHECK(rows[1].best.empty());
  CHECK(!rows[1].tied);
  CHECK(rows[1].ranked_by == figure_named("kl_predicted"));
  CHECK(rows[1].is_outside());
  mark_best(by_error, figure_named("rel_err"));
  CHECK(by_error[1].best == "a");
  CHECK(!by_error[1].is_outside());
  for (Record& row : rows) row.kl.outside = "layer 0, error 0.64 of the stream";
  for (Record& row : rows) row.best.clear();
  mark_best(rows);
  for (const Record& row : rows) CHECK(row.best.empty());
}

// Four probes give no p-value below 2 / 2^4, eight of two texts 2 / 2^8.
TEST_CASE("with fewer than three texts predictions are tested over probes, and one probe decides nothing") {
  std::vector<Record> two = {predicted("a", {0.2, 0.4}, 1), predicted("b", {0.1, 0.2}, 2)};
  mark_best(two);
  CHECK(two[0].tied == false);
  CHECK(two[0].tested_over == "8 probes");
  CHECK(std::isnan(two[0].geomean));
  std::vector<Record> one = {predicted("a", {0.2}, 1), predicted("b", {0.1}, 2)};
  mark_best(one);
  CHECK(one[0].best == "b");
  CHECK(!one[0].tied);
}

// Two layers of eight with c and c / 2: (1 + 1/4) 8 / 2 = 5 times the prediction of one layer.
TEST_CASE("of a sample of layers the probes of each layer are the units, and tests over texts hold for these layers") {
  const auto row = [](const std::string& method, double c, std::size_t texts) {
    Record r = predicted(method, std::vector<double>(texts, c), 1);
    r.model_layers = 8, r.replayed_layers = r.compressed_layers = {1, 5};
    r.probed = {.extrapolates = true, .scale = 4};
    for (ProbeSums& sums : r.probes) {
      sums.layers = 2;
      for (std::size_t i = 0; i < 4; ++i) sums.sums.push_back(sums.sums[i] / 2);
    }
    r.kl = predict_kl(r.probes, r.probed);
    return r;
  };
  std::vector<Record> rows = {row("a", 0.2, 1), row("b", 0.1, 1)};
  CHECK(rows[1].kl.mean == Approx(5 * of_one * 0.01));
  mark_best(rows);
  CHECK(rows[0].tied == false);
  CHECK(rows[0].tested_over == "8 probes of layers");
  CHECK(rows[0].diff_best == Approx(15 * of_one * 0.01));
  std::vector<Record> texts = {row("a", 0.2, 3), row("b", 0.1, 3)};
  mark_best(texts);
  CHECK(texts[0].tested_over == "3 texts on these 2 layers");
}

// Squares: a has the errors 1 and 7 (mean 4, mean square 25), b 5 and 5 (mean 5, mean square 25 as well, times 4).
TEST_CASE("residual errors are ranked by their mean square, of which the root is told") {
  const auto row = [](const std::string& method, double square, double rel_err) {
    Record r = predicted(method, {0.1}, static_cast<float>(rel_err));
    r.probes.clear(), r.kl = {};
    r.metrics[Metric::residual_err].mean = r.metrics[Metric::residual_err].rms = std::sqrt(square);
    TestedSums& squares = r.tested[Metric::residual_err];
    squares.sums = {.seeds = 1, .blocks = std::vector<double>(16, square), .block_counts = std::vector<double>(16, 1)};
    squares.log_sums = squares.sums;
    for (double& value : squares.log_sums.blocks) value = std::log(square);
    for (std::size_t text = 0; text < 3; ++text) squares.places.push_back({text, 0, square, 1});
    r.tested[Metric::rel_err].places = squares.places;
    return r;
  };
  std::vector<Record> rows = {row("a", 100, 1), row("b", 25, 2)};
  mark_best(rows);
  CHECK(rows[0].ranked_by == figure_named("residual_err"));
  CHECK(rows[0].best == "b");
  CHECK(rows[0].ratio_best == Approx(2));
  CHECK(rows[1].geomean == Approx(5));
  CHECK(rows[0].diff_best == Approx(75));
}
