// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/scores.hpp>

using namespace kvbench;
using namespace kvbench::eval;

namespace {

constexpr float never = -std::numeric_limits<float>::infinity();
float logarithm(double p) { return static_cast<float>(std::log(p)); }

}  // namespace

TEST_CASE("KL, total variation, nll and agreement of two small rows") {
  // full: (1/2, 1/4, 1/4), compressed: (1/4, 1/2, 1/4); KL = 1/2 ln 2 - 1/4 ln 2 = ln(2) / 4; (1/4 + 1/4 + 0) / 2.
  const std::array full{logarithm(0.5), logarithm(0.25), logarithm(0.25)};
  const std::array compressed{logarithm(0.25), logarithm(0.5), logarithm(0.25)};
  const TokenScore score = score_token(full, compressed, 1);
  CHECK(score.kl == doctest::Approx(std::log(2.0) / 4).epsilon(1e-7));
  CHECK(score.tv == doctest::Approx(0.25));
  CHECK(score.nll_full == doctest::Approx(std::log(4.0)).epsilon(1e-7));
  CHECK(score.nll == doctest::Approx(std::log(2.0)).epsilon(1e-7));
  CHECK_FALSE(score.same_top);
  CHECK_FALSE(score.right_full);
  CHECK(score.right);
  const TokenScore same = score_token(full, full, 0);
  CHECK(same.kl == 0);
  CHECK(same.tv == 0);
  CHECK(same.same_top);
  CHECK(same.right_full);
}

TEST_CASE("the full cache is sure of a token from a probability of 0.9 on, whatever the other one says") {
  const std::array nearly{logarithm(0.89), logarithm(0.11)}, sure{logarithm(0.91), logarithm(0.09)};
  CHECK_FALSE(score_token(nearly, sure, 0).sure);
  CHECK(score_token(sure, nearly, 1).sure);
}

TEST_CASE("scores do not depend on the level of the logits, and huge logits do not overflow") {
  const std::array a{1.0f, 2.0f, 3.0f}, b{3.0f, 2.5f, 2.0f};
  const std::array far_a{10001.0f, 10002.0f, 10003.0f}, far_b{-9997.0f, -9997.5f, -9998.0f};
  CHECK(score_token(far_a, far_b, 2).kl == doctest::Approx(score_token(a, b, 2).kl).epsilon(1e-12));
  CHECK(score_token(far_a, far_b, 2).nll == doctest::Approx(score_token(a, b, 2).nll).epsilon(1e-12));
}

TEST_CASE("KL is small and exact where distributions nearly agree") {
  // KL of (p, 1 - p) and (p + e, 1 - p - e) is e^2 / (2 p (1 - p)) to first order.
  const double e = 1e-4;
  const std::array a{0.0f, 0.0f}, b{static_cast<float>(std::log((0.5 + e) / (0.5 - e))), 0.0f};
  CHECK(score_token(a, b, 0).kl == doctest::Approx(2 * e * e).epsilon(1e-3));
}

TEST_CASE("tokens without probability: no share in KL on the left, infinite KL on the right; ties go to the first") {
  const std::array half{0.0f, 0.0f, never}, third{0.0f, 0.0f, 0.0f};
  CHECK(score_token(half, third, 0).kl == doctest::Approx(std::log(1.5)));
  CHECK(std::isinf(score_token(third, half, 0).kl));
  CHECK(score_token(third, half, 0).right);
  CHECK_FALSE(score_token(third, half, 1).right);
}

TEST_CASE("the short context: nll and the most probable token; key tokens need the distant context") {
  const std::array logits{logarithm(0.125), logarithm(0.875)};
  const ShortScore score = score_short(logits, 0);
  CHECK(score.nll == doctest::Approx(std::log(8.0)).epsilon(1e-7));
  CHECK_FALSE(score.right);
  CHECK(is_key_token(0.5, {.nll = 2.5}));
  CHECK_FALSE(is_key_token(0.5, {.nll = 2.4}));
  CHECK_FALSE(is_key_token(3, {.nll = 0.5}));
}

TEST_CASE("logits that cannot be scored are refused") {
  const std::array good{0.0f, 1.0f}, bad{0.0f, std::nanf("")}, none{never, never};
  const std::array longer{0.0f, 1.0f, 2.0f};
  CHECK_THROWS_AS(score_token(good, bad, 0), Error);
  CHECK_THROWS_AS(score_token(good, none, 0), Error);
  CHECK_THROWS_AS(score_token(good, longer, 0), Error);
  CHECK_THROWS_AS(score_token(good, good, 2), Error);
  CHECK_THROWS_AS(score_short(good, -1), Error);
}

TEST_CASE("McNemar's mid-p of small tables") {
  CHECK(mcnemar_mid_p(0, 0) == 1);
  CHECK(mcnemar_mid_p(3, 3) == doctest::Approx(1));
  // 5 to 0: 2 / 32 exactly, minus half of the two tails of 1 / 32.
  CHECK(mcnemar_mid_p(5, 0) == doctest::Approx(1.0 / 32));
  CHECK(mcnemar_mid_p(0, 5) == doctest::Approx(1.0 / 32));
  // 6 to 1 of 7: 2 P(X = 0) + P(X = 1) = (2 + 7) / 128.
  CHECK(mcnemar_mid_p(6, 1) == doctest::Approx(9.0 / 128));
  // 12 to 2 of 14: (2 (1 + 14) + 91) / 16384.
  CHECK(mcnemar_mid_p(12, 2) == doctest::Approx(121.0 / 16384));
}

TEST_CASE("the equivalence test of a mean") {
  // Mean 0, standard error 0.1 (deviations +-0.1 * sqrt(3) of four values): t = margin / 0.1 with 3 degrees of freedom.
  const double d = 0.1 * std::sqrt(3.0);
  const std::vector<double> values = {d, -d, d, -d};
  CHECK(tost_mean_p(values, 0.2353363) ==
        doctest::Approx(0.05).epsilon(1e-5));   // the 95 % quantile of t(3) is 2.353363
  CHECK(tost_mean_p(values, 0.5841) < 0.0051);  // 99.5 %: 5.8409
  std::vector<double> shifted = values;
  for (double& x : shifted) x -= 0.3;
  CHECK(tost_mean_p(shifted, 0.5353363) == doctest::Approx(0.05).epsilon(1e-5));
  CHECK(tost_mean_p(shifted, 0.3) == doctest::Approx(0.5));
  CHECK(tost_mean_p(shifted, 0.1) > 0.5);
  CHECK(std::isnan(tost_mean_p(std::vector{0.1}, 0.2)));
  CHECK(tost_mean_p(std::vector{0.1, 0.1}, 0.2) == 0);
  CHECK(tost_mean_p(std::vector{0.1, 0.1}, 0.1) == 1);
}

TEST_CASE("the equivalence test of proportions needs enough items, even without a flip") {
  CHECK(tost_flips_p(0, 0, 10, 0.05) == doctest::Approx(std::pow(0.95, 10)));
  CHECK(tost_flips_p(0, 0, 58, 0.05) > 0.05);
  CHECK(tost_flips_p(0, 0, 59, 0.05) < 0.05);
  // Flips in both directions do not cancel: 1 of 59 in each is more than none.
  CHECK(tost_flips_p(1, 1, 59, 0.05) == doctest::Approx(std::pow(0.95, 59) + 59 * 0.05 * std::pow(0.95, 58)));
  CHECK(tost_flips_p(59, 0, 59, 0.05) == 1);
  CHECK(std::isnan(tost_flips_p(0, 0, 0, 0.05)));
}

TEST_CASE("ranks with ties") {
  CHECK(ranks_of(std::vector{3.0, 1.0, 3.0, 2.0}) == std::vector{3.5, 1.0, 3.5, 2.0});
  CHECK(ranks_of(std::vector{5.0, 5.0, 5.0}) == std::vector{2.0, 2.0, 2.0});
  CHECK(ranks_of(std::vector<double>{}).empty());
}

TEST_CASE("Spearman's correlation with ties, and of monotone relations") {
  const std::vector<double> x = {1, 2, 3, 4};
  CHECK(spearman(x, std::vector{1.0, 10.0, 100.0, 1e9}) == doctest::Approx(1));
  CHECK(spearman(x, std::vector{4.0, 3.0, 2.0, 1.0}) == doctest::Approx(-1));
  // Ranks 1 2 3 4 and 1.5 1.5 3 4: covariance 4.5, variances 5 and 4.5.
  CHECK(spearman(x, std::vector{7.0, 7.0, 8.0, 9.0}) == doctest::Approx(4.5 / std::sqrt(22.5)));
  // Without ties: 1 - 6 sum d^2 / (n (n^2 - 1)) with d = (1, 1, 1, 1) -> 1 - 24 / 60.
  CHECK(spearman(x, std::vector{2.0, 1.0, 4.0, 3.0}) == doctest::Approx(0.6));
  CHECK(std::isnan(spearman(x, std::vector{1.0, 1.0, 1.0, 1.0})));
  CHECK(std::isnan(spearman(std::vector{1.0, 2.0}, std::vector{1.0, 2.0})));
}
