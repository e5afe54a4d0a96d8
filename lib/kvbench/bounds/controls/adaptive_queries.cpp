// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/controls/adaptive_queries.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index control_tokens = 512;

/// |w| of the signed sum of the vectors.
double sum_length(const WalkSample& sample, std::span<const std::int32_t> signs) {
  std::vector<double> sum(static_cast<std::size_t>(sample.dv));
  for (Index i = 0; i < sample.n; ++i) {
    const auto value = sample.value(i);
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += signs[static_cast<std::size_t>(i)] * double{value[c]};
  }
  return std::sqrt(squared_norm(sum));
}

void run_negative_adaptive(CheckContext& context) {
  const Subject& subject = *context.subject;
  PlainVectors vectors = plain_vectors(subject.keys, subject.queries, subject.d(), control_tokens);
  vectors.sample.head = subject.head;
  check_adaptive(context, vectors, std::min<Index>(context.options.seeds, 40), library_walk(context.backend));
}

}  // namespace

void check_adaptive(CheckContext& context, const PlainVectors& vectors, Index seeds, const SignWalk& walk) {
  const WalkSample& sample = vectors.sample;
  if (sample.n == 0) throw methods::Unavailable("there are no vectors to balance");
  const double delta = context.options.delta;
  const methods::WalkSettings settings{
      .constant = {methods::WalkConstant::Kind::tight}, .delta = delta / 2, .scale = 1};
  const double c = settings.constant.of(sample.n, settings.delta);
  const double bound = std::sqrt(sub_gaussian(c) * 2 * std::log(4 / delta)) * std::exp(radii(sample).log_r());
  std::vector<double> lengths;
  for (Index seed = 0; seed < seeds; ++seed) {
    context.poll();
    lengths.push_back(sum_length(sample, walk(sample, settings, context.seed(seed)).signs));
  }
  const auto failed = std::ranges::count_if(lengths, [&](double length) { return length > bound; });
  context.claim(
      {"a query chosen after the signs exceeds the bound",
       fmt::format("n={};d={};c=tight={:.4g}", sample.n, sample.dv, c)},
      decide_between(binomial_tail(failed, seeds, delta), binomial_tail(seeds - failed, seeds, 1 - delta)),
      fmt::format("negative control: u = w / |w|; beyond the tight bound of Theorem 3.4 in {} of {} seeds, where fixed "
                  "queries are with probability {} at most",
                  failed, seeds, delta),
      {.measured = mean(lengths), .bound = bound, .measured_q99 = quantile(lengths, 0.99)});
}

Check negative_adaptive() {
  return {.id = "negative.adaptive",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.4, outside its assumptions",
          .statement = "the bound fails for queries that are chosen after the signs are drawn",
          .method = "balancekv",
          .run = run_negative_adaptive};
}

}  // namespace kvbench::bounds
