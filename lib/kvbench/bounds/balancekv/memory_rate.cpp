// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1: the error of the output falls like 1/memory, that of independent samples
// like 1/sqrt(memory). `balancekv` with one block of all tokens and `uniform` of the registry run at n/2 .. n/16
// tokens; the sizes are the numbers that each holds by its footprint, so that they are compared at equal bytes.
// docs/theory/balancekv.exponent.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index rate_tokens = 512, rate_seeds = 24, rate_queries = 4;

WeighTokens weigh_with(const Subject& subject, Index n, const std::string& name,
                       const std::vector<methods::Assignment>& settings, Backend& backend) {
  const methods::MethodInfo& method = methods::find_method(name);
  const methods::MakeCache make = method.prepare_head(first_context(subject.head, n), method.bind(settings), backend);
  return [make, n, &backend](Index budget, std::uint32_t seed) {
    Session session(make(budget, seed), n, backend);
    HeldWeights held{token_weights(session, backend)};
    const std::vector<methods::Footprint> footprints = session.footprint();
    for (const methods::FootprintArray& array : footprints.front())
      held.numbers += static_cast<double>(array.rows * array.cols);
    return held;
  };
}

/// |z/D' - Attn| of one query.
double answer_error(const QueryRows& num, const QueryRows& den, const HeldWeights& held) {
  const std::vector<double> total = num.total();
  std::vector<double> answer(total.size());
  double mass = 0;
  for (std::size_t i = 0; i < held.den.size(); ++i) {
    mass += held.den[i] * den.rows[i];
    for (std::size_t c = 0; c < answer.size(); ++c) answer[c] += held.num[i] * num.rows[i * answer.size() + c];
  }
  double error2 = 0;
  for (std::size_t c = 0; c < answer.size(); ++c) error2 += std::pow(answer[c] / mass - total[c] / den.absolute, 2);
  return std::sqrt(error2);
}

void run_balancekv_memory_rate(CheckContext& context) {
  const Subject& subject = *context.subject;
  const WalkSample sample = walk_sample(subject, rate_tokens, true);
  if (sample.n < 64 || subject.num_queries() == 0) throw methods::Unavailable("fewer than 64 tokens, or no queries");
  const std::vector<float> queries = evenly_spaced_rows(subject.queries, subject.d(), rate_queries);
  const std::string block = fmt::format("{}", sample.n);
  for (const char* constants : {"paper", "tight", "1"}) {
    check_memory_rate(context, sample, queries,
                      {.method = fmt::format("balancekv;block=n;c={}", constants),
                       .expected = -1,
                       .seeds = rate_seeds,
                       .weigh = weigh_with(subject, sample.n, "balancekv", {{"block", block}, {"constants", constants}},
                                           context.backend)});
  }
  check_memory_rate(context, sample, queries,
                    {.method = "uniform",
                     .expected = -0.5,
                     .seeds = rate_seeds,
                     .weigh = weigh_with(subject, sample.n, "uniform", {}, context.backend)});
}

}  // namespace

void check_memory_rate(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                       const MemoryRate& rate) {
  WalkSample ones = sample;
  ones.dv = 0;
  const std::vector<QueryRows> num = query_rows(sample, queries), den = query_rows(ones, queries);
  std::vector<double> sizes;
  std::vector<std::vector<double>> errors;
  for (const Index budget : {sample.n / 2, sample.n / 4, sample.n / 8, sample.n / 16}) {
    double numbers = 0;
    std::vector<double>& at = errors.emplace_back();
    for (Index seed = 0; seed < rate.seeds; ++seed) {
      context.poll();
      const HeldWeights held = rate.weigh(budget, context.seed(seed));
      double square = 0;
      for (std::size_t q = 0; q < num.size(); ++q) square += std::pow(answer_error(num[q], den[q], held), 2);
      at.push_back(std::sqrt(square / static_cast<double>(num.size())));
      numbers += held.numbers / static_cast<double>(rate.seeds);
    }
    sizes.push_back(numbers);
  }
  add_rate(context, {"slope of ln|z - Attn| over ln(numbers held)", fmt::format("n={};{}", sample.n, rate.method)},
           error_rate(sizes, errors), rate.expected,
           fmt::format("{:.0f} to {:.0f} numbers; samples without replacement are a little steeper than -1/2",
                       sizes.back(), sizes.front()));
}

Check balancekv_memory_rate() {
  return {.id = "balancekv.memory_rate",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.1",
          .statement = "how fast the error of the output falls with memory, beside uniform sampling",
          .run = run_balancekv_memory_rate};
}

}  // namespace kvbench::bounds
