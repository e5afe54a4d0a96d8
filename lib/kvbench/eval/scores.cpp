// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/scores.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/core/statistics.hpp>

namespace kvbench::eval {

int most_probable(std::span<const float> logits) {
  std::size_t top = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY) throw Error("logit {} of a prediction is not finite", i);
    if (logits[i] > logits[top]) top = i;
  }
  if (logits.empty() || logits[top] == -INFINITY) throw Error("a prediction has no finite logit");
  return static_cast<int>(top);
}

namespace {

/// A row of logits with the logarithm of its softmax.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits)
      : logits_(logits), top_(static_cast<std::size_t>(most_probable(logits))) {
    terms_.reserve(logits.size());
    for (const float logit : logits) terms_.push_back(std::exp(static_cast<double>(logit) - logits[top_]));
    sum_ = std::accumulate(terms_.begin(), terms_.end(), 0.0);
    log_sum_exp_ = logits[top_] + std::log(sum_);
  }

  std::size_t top() const { return top_; }
  double probability(std::size_t i) const { return terms_[i] / sum_; }
  double log_probability(std::size_t i) const { return logits_[i] - log_sum_exp_; }

 private:
  std::span<const float> logits_;
  std::vector<double> terms_;  ///< exp(logit - largest): exponentials take most of the time, so they are computed once
  std::size_t top_;
  double sum_ = 0, log_sum_exp_ = 0;
};

double divergence(const LogSoftmax& full, const LogSoftmax& other, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (const double p = full.probability(i); p > 0) sum += p * (full.log_probability(i) - other.log_probability(i));
  }
  return std::max(0.0, sum);  // rounding may give a negative sum of nearly equal distributions
}

double total_variation(const LogSoftmax& full, const LogSoftmax& other, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::abs(full.probability(i) - other.probability(i));
  return std::min(1.0, sum / 2);
}

std::size_t index_of(int token, std::size_t count) {
  if (token < 0 || static_cast<std::size_t>(token) >= count)
    throw Error("token id {} exceeds the {} logits of a prediction", token, count);
  return static_cast<std::size_t>(token);
}

}  // namespace

TokenScore score_token(std::span<const float> full, std::span<const float> compressed, int token) {
  if (full.size() != compressed.size())
    throw Error("rows of {} and {} logits cannot be compared", full.size(), compressed.size());
  const std::size_t truth = index_of(token, full.size());
  const LogSoftmax a(full), b(compressed);
  return {.kl = divergence(a, b, full.size()),
          .tv = total_variation(a, b, full.size()),
          .nll_full = -a.log_probability(truth),
          .nll = -b.log_probability(truth),
          .same_top = a.top() == b.top(),
          .sure = a.probability(a.top()) >= sure_probability,
          .right_full = a.top() == truth,
          .right = b.top() == truth};
}

ShortScore score_short(std::span<const float> logits, int token) {
  const std::size_t truth = index_of(token, logits.size());
  const LogSoftmax row(logits);
  return {.nll = -row.log_probability(truth), .right = row.top() == truth};
}

double mcnemar_mid_p(std::int64_t harmful, std::int64_t beneficial) {
  const std::int64_t discordant = harmful + beneficial, fewer = std::min(harmful, beneficial);
  // 2 P(X < fewer) + P(X = fewer): both tails, with half of the probability of what was observed.
  const double below = fewer == 0 ? 0 : binomial_head(fewer - 1, discordant, 0.5);
  return std::min(1.0, binomial_head(fewer, discordant, 0.5) + below);
}

double tost_mean_p(std::span<const double> differences, double margin) {
  if (differences.size() < 2) return NAN;
  const double centre = mean(differences), error = standard_error(differences), room = margin - std::abs(centre);
  if (std::isnan(centre) || std::isnan(error)) return NAN;
  if (error == 0) return room > 0 ? 0 : 1;
  return student_tail(room / error, static_cast<double>(differences.size() - 1));
}

double tost_flips_p(std::int64_t harmful, std::int64_t beneficial, std::int64_t items, double margin) {
  if (items == 0) return NAN;
  return binomial_head(std::max(harmful, beneficial), items, margin);
}

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

double spearman(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size());
  if (x.size() < 3) return NAN;
  const std::vector<double> a = ranks_of(x), b = ranks_of(y);
  const double centre = static_cast<double>(x.size() + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - centre) * (b[i] - centre);
    aa += (a[i] - centre) * (a[i] - centre);
    bb += (b[i] - centre) * (b[i] - centre);
  }
  return aa == 0 || bb == 0 ? NAN : ab / std::sqrt(aa * bb);
}

}  // namespace kvbench::eval
