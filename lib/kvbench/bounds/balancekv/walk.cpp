// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), lines 6 to 9 of Algorithm 2: token j is +1 with probability
//   p_j = 1/2 - <w_{j-1}, u_j> / (2 c R^2),   w_{j-1} = sum of sign_i u_i over i < j,   <u_i, u_j> = e^{a<k_i,k_j>}
//                                             <v_i, v_j>,
// clamped to [0, 1]; and the matrix of these products is positive semidefinite, so that such vectors u_i exist.
//
// Given the earlier signs, the sign of step j is +1 with probability p_j, which EventTest tests at any number of steps,
// for steps of similar p_j and with weights that find a wrong threshold. With the c of the paper every p_j is near 1/2,
// and a wrong threshold would not show; c = 1, and keys scaled to a max |k|^2 <= 1/2, make it visible.
// docs/theory/balancekv.walk.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <kvbench/bounds/trials/law_tests.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index walk_tokens = 48;
constexpr double walk_constant = 1, largest_key_norm2 = 0.5;
/// Rounding error of p in fp32: steps whose p is this close to 0 or 1 are not tested.
constexpr double probability_rounding = 1e-4;

struct StepSums {
  std::array<EventTest, 10> classes;  ///< steps with similar p
  EventTest drift;
  double score = 0, information = 0;  ///< of the coefficient of x = <w, u> / (c R^2)

  void add(double p, double x, bool plus) {
    classes[static_cast<std::size_t>(std::min(9.0, p * 10))].add(1, p, plus);
    drift.add(x, p, plus);
    // Likelihood score of p = 1/2 - beta x / 2 at beta = 1, variance p (1 - p).
    score += -x / 2 * ((plus ? 1 : 0) - p) / (p * (1 - p));
    information += x * x / 4 / (p * (1 - p));
  }

  double classes_p() const {
    double least = 1;
    for (const EventTest& steps : classes) least = std::min(least, steps.p_value());
    return std::min(1.0, least * static_cast<double>(classes.size()));
  }
};

}  // namespace

WalkSample with_short_keys(WalkSample sample, double largest) {
  const double key = radii(sample).key;
  if (key <= largest) return sample;
  const auto factor = static_cast<float>(std::sqrt(largest / key));
  for (float& x : sample.keys) x *= factor;
  return sample;
}

StepLaw step_law(const WalkSample& sample, double c, Index seeds, const SignWalk& walk,
                 const std::function<void()>& poll) {
  const std::vector<double> gram = relative_gram(sample);
  const methods::WalkSettings settings{.constant = {methods::WalkConstant::Kind::number, c}, .scale = sample.scale};
  StepLaw law;
  StepSums sums;
  for (Index seed = 0; seed < seeds; ++seed) {
    poll();
    const methods::WalkSigns walked = walk(sample, settings, static_cast<std::uint32_t>(seed));
    for (Index i = 0; i < sample.n; ++i) {
      double x = 0;
      for (Index j = 0; j < i; ++j)
        x += walked.signs[static_cast<std::size_t>(j)] * gram[static_cast<std::size_t>(i * sample.n + j)];
      x /= c;
      const double p = 0.5 - x / 2;
      const bool plus = walked.signs[static_cast<std::size_t>(i)] > 0;
      ++law.steps;
      law.mean_bias += std::min(0.5, std::abs(p - 0.5));
      if (p < -probability_rounding || p > 1 + probability_rounding) {
        ++law.forced;
        law.forced_wrong += plus != (p > 1);
      } else if (p > probability_rounding && p < 1 - probability_rounding) {
        sums.add(p, x, plus);
      }
    }
  }
  law.mean_bias /= static_cast<double>(std::max<std::int64_t>(law.steps, 1));
  law.classes = sums.classes_p();
  law.drift = sums.drift.p_value();
  if (sums.information > 0) law.drift_ratio = 1 + sums.score / sums.information;
  return law;
}

double negative_pivot(std::vector<double> matrix, Index n) {
  const auto at = [&](Index i, Index j) -> double& { return matrix[static_cast<std::size_t>(i * n + j)]; };
  double largest = 0;
  for (Index i = 0; i < n; ++i) largest = std::max(largest, std::abs(at(i, i)));
  std::vector<Index> left;
  for (Index i = 0; i < n; ++i) left.push_back(i);
  const double tolerance = 1e-12 * static_cast<double>(n) * largest;
  while (!left.empty()) {
    const auto best = std::ranges::max_element(left, {}, [&](Index i) { return at(i, i); });
    const Index p = *best;
    for (const Index i : left) {
      if (at(i, i) < -tolerance) return at(i, i);
    }
    if (at(p, p) <= tolerance) return 0;
    left.erase(best);
    for (const Index i : left) {
      for (const Index j : left) at(i, j) -= at(i, p) * at(p, j) / at(p, p);
    }
  }
  return 0;
}

namespace {

void add_step_rows(CheckContext& context, const StepLaw& law, const std::string& params) {
  context.law({"sign of a step, classes of p", params}, law.classes,
              fmt::format("{} steps, mean |p - 1/2| = {:.3g}", law.steps, law.mean_bias));
  context.law({"sign of a step, drift", params}, law.drift,
              "measured: the coefficient of <w, u> over the one that the threshold c R^2 prescribes", law.drift_ratio);
  if (law.forced > 0) context.exact({"sign of a step beyond the threshold", params}, law.forced_wrong, law.forced);
}

void run_balancekv_walk(CheckContext& context) {
  for (const bool with_values : {false, true}) {
    check_walk(context, with_short_keys(walk_sample(*context.subject, walk_tokens, with_values), largest_key_norm2),
               library_walk(context.backend));
  }
}

}  // namespace

void check_walk(CheckContext& context, const WalkSample& sample, const SignWalk& walk) {
  if (sample.n == 0) throw methods::Unavailable("there are no tokens to balance");
  const std::string params = fmt::format("n={};c={};a|k|^2={:.3g};{}", sample.n, walk_constant, radii(sample).key,
                                         sample.dv == 0 ? "v=1" : "values of the head");
  const double pivot = negative_pivot(relative_gram(sample), sample.n);
  context.exact({"products are those of vectors", params}, pivot < 0, 1,
                "negative pivot of the Gram matrix over R^2; 0: none beyond rounding", {.measured = pivot, .bound = 0});
  const SignWalk from_offset = [&](const WalkSample& s, const methods::WalkSettings& settings, std::uint32_t seed) {
    return walk(s, settings, context.seed(seed));
  };
  add_step_rows(context, step_law(sample, walk_constant, context.options.seeds, from_offset, [&] { context.poll(); }),
                params);
}

Check balancekv_walk() {
  return {.id = "balancekv.walk",
          .paper = "BalanceKV, arXiv 2502.07861, Algorithm 2, lines 6 to 9",
          .statement = "the sign of each step has the probability that the threshold c R^2 prescribes",
          .run = run_balancekv_walk};
}

}  // namespace kvbench::bounds
