// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/scores.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <kvbench/core/error.hpp>

namespace kvbench::eval {
namespace {

/// A row of logits with the logarithm of its softmax.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits) : logits_(logits) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (std::isnan(logits[i]) || logits[i] == INFINITY) throw Error("logit {} of a prediction is not finite", i);
      if (logits[i] > logits[top_]) top_ = i;
    }
    if (logits.empty() || logits[top_] == -INFINITY) throw Error("a prediction has no finite logit");
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
  std::size_t top_ = 0;
  double sum_ = 0, log_sum_exp_ = 0;
};

double divergence(const LogSoftmax& full, const LogSoftmax& other, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (const double p = full.probability(i); p > 0) sum += p * (full.log_probability(i) - other.log_probability(i));
  }
  return std::max(0.0, sum);  // rounding may give a negative sum of nearly equal distributions
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
          .nll_full = -a.log_probability(truth),
          .nll = -b.log_probability(truth),
          .same_top = a.top() == b.top(),
          .right_full = a.top() == truth,
          .right = b.top() == truth};
}

ShortScore score_short(std::span<const float> logits, int token) {
  const std::size_t truth = index_of(token, logits.size());
  const LogSoftmax row(logits);
  return {.nll = -row.log_probability(truth), .right = row.top() == truth};
}

}  // namespace kvbench::eval
