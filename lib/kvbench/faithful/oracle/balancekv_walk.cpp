// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/balancekv.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

/// Half of the distance of 1 from the next number of fp32.
constexpr double half_ulp = 0x1p-24;
/// Independent rounding errors add like random signs; this many standard deviations are allowed.
constexpr double safety = 8;
/// What kernels may leave out of step * sum.
constexpr double neglected = 2e-7;
/// Logit over a r_key^2 below which products may underflow in fp64, which matters to greedy signs alone.
constexpr double lowest = -650;

/// One call of Algorithm 2.
class PaperWalk {
 public:
  PaperWalk(const WalkVectors& vectors, const WalkCall& call, const BalanceSetup& setup, const WalkRules& rules)
      : vectors_(vectors), call_(call), setup_(setup), rules_(rules) {
    for (const Index token : call.tokens) norms_.push_back(norms_of(token));
    if (!rules.own_sum && call.last != nullptr) earlier_ = *call.last;
    const double c = constant_of_call(std::ssize(call.tokens), setup, rules);
    const double widened = !setup.pairs ? 1 : vectors.dv > 0 ? rules.pair_radius2 : rules.pair_radius2_of_ones;
    threshold_ = (rules.threshold_has_c ? c : 1) * widened * call.radii.value2;
    if (!rules.key_radius_squared) threshold_ *= std::exp(std::sqrt(call.radii.key2) - call.radii.key2);
  }

  WalkOutcome run() {
    const std::size_t n = call_.tokens.size();
    for (std::size_t i = 0; i < n; i += setup_.pairs ? 2 : 1) {
      const bool pair = setup_.pairs && i + 1 < n;
      const int sign = step(i, pair);
      outcome_.signs.push_back(sign);
      if (pair) outcome_.signs.push_back(-sign);
    }
    return outcome_;
  }

 private:
  struct Norms {
    double key = 0, value = 1;
  };
  Norms norms_of(Index token) const {
    return {std::sqrt(bounds::squared_norm(vectors_.key(token))),
            vectors_.dv > 0 ? std::sqrt(bounds::squared_norm(vectors_.value(token))) : 1};
  }

  void add_term(KernelSum& sum, std::size_t row, Index other, int sign, const Norms& norms) const {
    const Index token = call_.tokens[row];
    const double d = static_cast<double>(vectors_.d), dv = static_cast<double>(vectors_.dv);
    const double factor =
        vectors_.dv > 0 && rules_.value_product ? bounds::dot(vectors_.value(token), vectors_.value(other)) : 1;
    sum.add(sign, vectors_.scale * bounds::dot(vectors_.key(token), vectors_.key(other)), factor,
            call_.radii.key2 + std::sqrt(d) * vectors_.scale * norms_[row].key * norms.key,
            vectors_.dv > 0 ? std::sqrt(dv) * norms_[row].value * norms.value : 0);
  }

  /// Line 6: the products with all earlier tokens of the call.
  KernelSum sum_of(std::size_t row, std::size_t before) const {
    KernelSum sum;
    for (std::size_t j = 0; j < earlier_.tokens.size(); ++j) {
      add_term(sum, row, earlier_.tokens[j], earlier_.signs[j], norms_of(earlier_.tokens[j]));
    }
    for (std::size_t j = 0; j < before; ++j) add_term(sum, row, call_.tokens[j], outcome_.signs[j], norms_[j]);
    return sum;
  }

  /// Lines 6 to 9 for row i, or for the difference of rows i and i + 1.
  int step(std::size_t i, bool pair) {
    const KernelSum own = sum_of(i, i), partner = pair ? sum_of(i + 1, i) : KernelSum();
    const double top = std::max(own.top(), partner.top());
    const KernelSum::Relative first = own.to(top), second = partner.to(top);
    const double sum = first.value - second.value, rounding = first.rounding + second.rounding;
    const bool flipped = static_cast<std::int64_t>(outcome_.steps++) == rules_.flipped_step;
    const int sign = setup_.constant == "greedy"
                         ? greedy_sign(sum, rounding, top - call_.radii.key2)
                         : drawn_sign(sum, rounding, std::exp(top - call_.radii.key2), call_.uniforms[i]);
    return flipped ? -sign : sign;
  }

  int greedy_sign(double sum, double rounding, double top) {
    outcome_.close |= rounding > 0 && (std::abs(sum) <= rounding || top < lowest);
    return -rules_.drift * sum > 0 ? -1 : 1;
  }

  /// Sum and rounding are relative to `unit` e^{a r_key^2}.
  int drawn_sign(double sum, double rounding, double unit, double uniform) {
    // Zero values have zero sums, and no radius.
    const double step = threshold_ > 0 ? unit / (2 * threshold_) : 0, pull = step * sum;
    outcome_.fails += std::abs(pull) > 0.5;  // line 7
    const double p = 0.5 + rules_.drift * pull;
    const double margin = step * rounding + std::abs(pull) * half_ulp * (4 + 2 * call_.radii.key2) + neglected;
    outcome_.close |= std::abs(uniform - p) <= margin;
    return uniform < p ? 1 : -1;
  }

  const WalkVectors& vectors_;
  const WalkCall& call_;
  const BalanceSetup& setup_;
  const WalkRules& rules_;
  std::vector<Norms> norms_;
  SignedTokens earlier_;
  double threshold_ = 0;  ///< c R^2 over exp(a r_key^2)
  WalkOutcome outcome_;
};

}  // namespace

void KernelSum::add(int sign, double logit, double factor, double logit_rounding, double factor_rounding) {
  if (factor != 0 || factor_rounding != 0) terms_.push_back({sign, logit, factor, logit_rounding, factor_rounding});
}

double KernelSum::top() const {
  double top = -INFINITY;
  for (const Term& term : terms_) top = std::max(top, term.logit);
  return top;
}

/// The roundings of terms are independent of each other; every partial sum is rounded too.
KernelSum::Relative KernelSum::to(double top) const {
  constexpr double exponential = 4;  // of exp() and the product
  double sum = 0, path = 0, variance = 0;
  for (const Term& term : terms_) {
    const double size = std::exp(term.logit - top);
    const double rounding = size * (std::abs(term.factor) * (exponential + term.logit_rounding) + term.factor_rounding);
    sum += term.sign * size * term.factor;
    path += std::abs(sum);
    variance += rounding * rounding;
  }
  return {sum, half_ulp * (safety * std::sqrt(variance) + path)};
}

WalkRadii radii_of(const WalkVectors& vectors, std::span<const Index> tokens) {
  WalkRadii radii{.key2 = 0, .value2 = vectors.dv > 0 ? 0.0 : 1.0};
  for (const Index token : tokens) {
    radii.key2 = std::max(radii.key2, vectors.scale * bounds::squared_norm(vectors.key(token)));
    if (vectors.dv > 0) radii.value2 = std::max(radii.value2, bounds::squared_norm(vectors.value(token)));
  }
  return radii;
}

double constant_of_call(Index n, const BalanceSetup& setup, const WalkRules& rules) {
  const auto tokens = static_cast<double>(std::max<Index>(n, 1));
  const double delta = setup.delta > 0 ? setup.delta : 1 / tokens;
  const auto log = [&](double x) { return rules.natural_log ? std::log(x) : std::log2(x); };
  if (setup.constant == "paper") return rules.factor * log(tokens / delta);
  if (setup.constant == "tight") return 0.5 + log(2 * tokens / delta);
  return setup.constant == "greedy" ? 0 : std::stod(setup.constant);
}

WalkOutcome walk_of_paper(const WalkVectors& vectors, const WalkCall& call, const BalanceSetup& setup,
                          const WalkRules& rules) {
  return PaperWalk(vectors, call, setup, rules).run();
}

std::vector<std::size_t> kept_class(const std::vector<int>& signs, const WalkRules& rules) {
  const auto plus = std::ranges::count(signs, 1), minus = std::ssize(signs) - plus;
  const int smaller = plus <= minus ? 1 : -1, kept = rules.keep_smaller ? smaller : -smaller;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < signs.size(); ++i) {
    if (signs[i] == kept) places.push_back(i);
  }
  return places;
}

}  // namespace kvbench::faithful
