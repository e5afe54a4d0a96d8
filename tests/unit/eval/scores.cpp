// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/scores.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::eval;

namespace {

constexpr float never = -std::numeric_limits<float>::infinity();
float logarithm(double p) { return static_cast<float>(std::log(p)); }

}  // namespace

TEST_CASE("KL, nll and agreement of two small rows") {
  // full: (1/2, 1/4, 1/4), compressed: (1/4, 1/2, 1/4); KL = 1/2 ln 2 - 1/4 ln 2 = ln(2) / 4.
  const std::array full{logarithm(0.5), logarithm(0.25), logarithm(0.25)};
  const std::array compressed{logarithm(0.25), logarithm(0.5), logarithm(0.25)};
  const TokenScore score = score_token(full, compressed, 1);
  CHECK(score.kl == doctest::Approx(std::log(2.0) / 4).epsilon(1e-7));
  CHECK(score.nll_full == doctest::Approx(std::log(4.0)).epsilon(1e-7));
  CHECK(score.nll == doctest::Approx(std::log(2.0)).epsilon(1e-7));
  CHECK_FALSE(score.same_top);
  CHECK_FALSE(score.right_full);
  CHECK(score.right);
  const TokenScore same = score_token(full, full, 0);
  CHECK(same.kl == 0);
  CHECK(same.same_top);
  CHECK(same.right_full);
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
