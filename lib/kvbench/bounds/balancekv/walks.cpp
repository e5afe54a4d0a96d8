// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/walks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::bounds {
namespace {

double scaled_norm2(const WalkSample& sample, Index i) { return double{sample.scale} * squared_norm(sample.key(i)); }

double value_product(const WalkSample& sample, Index i, Index j) {
  return sample.dv == 0 ? 1 : dot(sample.value(i), sample.value(j));
}

/// Root mean square of the signed sums over that with random signs, for each query.
std::vector<double> ratios_to_random_signs(const WalkRuns& runs, std::span<const QueryRows> queries) {
  std::vector<double> ratios;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    if (queries[q].random_signs == 0 || runs.errors[q].empty()) continue;
    double square = 0;
    for (const double error : runs.errors[q]) square += std::pow(error / queries[q].random_signs, 2);
    ratios.push_back(std::sqrt(square / static_cast<double>(runs.errors[q].size())));
  }
  return ratios;
}

}  // namespace

WalkSample walk_sample(const Subject& subject, Index n, bool with_values) {
  WalkSample sample{.n = std::min(n, subject.tokens()),
                    .d = subject.d(),
                    .dv = with_values ? subject.dv() : 0,
                    .scale = subject.head.scale};
  sample.keys.assign(subject.keys.begin(), subject.keys.begin() + sample.n * sample.d);
  sample.values.assign(subject.values.begin(), subject.values.begin() + sample.n * sample.dv);
  sample.head = subject.head;
  return sample;
}

SignWalk library_walk(Backend& backend) {
  return [&backend](const WalkSample& sample, const methods::WalkSettings& settings, std::uint32_t seed) {
    const methods::Draws draws(seed, "checks of balancekv", sample.head);
    methods::WalkRows rows{.keys = backend.adopt(std::vector(sample.keys), sample.n, sample.d),
                           .starts = {0, static_cast<std::int32_t>(sample.n)}};
    if (sample.dv > 0) rows.values = backend.adopt(std::vector(sample.values), sample.n, sample.dv);
    for (Index i = 0; i < sample.n; ++i) rows.uniforms.push_back(draws.uniform(i));
    return softmax_balance(rows, settings, backend);
  };
}

double Radii::log_r() const { return key / 2 + std::log(value); }

Radii radii(const WalkSample& sample) {
  Radii found{.value = sample.dv == 0 ? 1.0 : 0.0};
  for (Index i = 0; i < sample.n; ++i) {
    found.key = std::max(found.key, scaled_norm2(sample, i));
    if (sample.dv > 0) found.value = std::max(found.value, std::sqrt(value_product(sample, i, i)));
  }
  return found;
}

std::vector<double> relative_gram(const WalkSample& sample) {
  const Radii radius = radii(sample);
  const double value2 = radius.value > 0 ? radius.value * radius.value : 1;
  std::vector<double> gram(static_cast<std::size_t>(sample.n * sample.n));
  for (Index i = 0; i < sample.n; ++i) {
    for (Index j = 0; j <= i; ++j) {
      const double logit = double{sample.scale} * dot(sample.key(i), sample.key(j));
      const double product = std::exp(logit - radius.key) * value_product(sample, i, j) / value2;
      gram[static_cast<std::size_t>(i * sample.n + j)] = gram[static_cast<std::size_t>(j * sample.n + i)] = product;
    }
  }
  return gram;
}

std::vector<double> relative_norms2(const WalkSample& sample) {
  const Radii radius = radii(sample);
  const double value2 = radius.value > 0 ? radius.value * radius.value : 1;
  std::vector<double> norms2;
  for (Index i = 0; i < sample.n; ++i) {
    norms2.push_back(std::exp(scaled_norm2(sample, i) - radius.key) * value_product(sample, i, i) / value2);
  }
  return norms2;
}

double sub_gaussian(double c) { return c * c / (2 * c - 1); }

double sub_gaussian(double c, std::span<const double> relative_norms2) {
  double sigma2 = 0;
  for (const double x : relative_norms2) sigma2 += x * std::max(0.0, 1 + sigma2 * (x - 2 * c) / (c * c));
  return sigma2;
}

double sub_gaussian_norm(Index s, double log_probability) {
  const auto size = static_cast<double>(s);
  return std::sqrt(size + 2 * std::sqrt(size * log_probability) + 2 * log_probability);
}

double fail_bound(double c, Index n) { return 2 * static_cast<double>(n) * std::exp(0.5 - c); }

std::vector<double> QueryRows::total() const {
  std::vector<double> sum(static_cast<std::size_t>(outputs));
  for (std::size_t i = 0; i < rows.size(); ++i) sum[i % sum.size()] += rows[i];
  return sum;
}

double QueryRows::relative(double factor, double exponent) const {
  return factor > 0 ? std::exp(std::log(factor) + exponent - shift) : 0;
}

std::vector<QueryRows> query_rows(const WalkSample& sample, const std::vector<float>& queries) {
  std::vector<QueryRows> all;
  const Index count = static_cast<Index>(queries.size()) / sample.d, s = sample.outputs();
  for (Index q = 0; q < count; ++q) {
    const std::span<const float> query(queries.data() + q * sample.d, static_cast<std::size_t>(sample.d));
    QueryRows& out = all.emplace_back();
    out.outputs = s;
    out.log_feature_norm = double{sample.scale} * squared_norm(query) / 2;
    std::vector<double> logits;
    for (Index i = 0; i < sample.n; ++i) logits.push_back(double{sample.scale} * dot(query, sample.key(i)));
    if (!logits.empty()) out.shift = std::ranges::max(logits);
    double squares = 0;
    for (Index i = 0; i < sample.n; ++i) {
      const double e = std::exp(logits[static_cast<std::size_t>(i)] - out.shift);
      for (Index c = 0; c < s; ++c) {
        out.rows.push_back(sample.dv == 0 ? e : e * double{sample.values[static_cast<std::size_t>(i * s + c)]});
      }
      const double length2 = e * e * value_product(sample, i, i);
      out.absolute += std::sqrt(length2);
      squares += length2;
    }
    out.random_signs = std::sqrt(squares);
  }
  return all;
}

double weighted_norm(const QueryRows& query, std::span<const double> weights) {
  std::vector<double> sum(static_cast<std::size_t>(query.outputs));
  const double* row = query.rows.data();
  for (const double weight : weights) {
    for (double& x : sum) x += weight * *row++;
  }
  return std::sqrt(squared_norm(sum));
}

WalkRuns run_walks(const WalkSample& sample, std::span<const QueryRows> queries, const methods::WalkSettings& settings,
                   Index seeds, const SignWalk& walk, const CheckContext& context) {
  WalkRuns runs{.c = settings.constant.of(sample.n, settings.delta), .errors = {queries.size(), std::vector<double>{}}};
  const std::vector<std::int32_t> whole = {0, static_cast<std::int32_t>(sample.n)};
  for (Index seed = 0; seed < seeds; ++seed) {
    context.poll();
    const methods::WalkSigns walked = walk(sample, settings, context.seed(seed));
    const std::vector<double> weights(walked.signs.begin(), walked.signs.end());
    for (std::size_t q = 0; q < queries.size(); ++q) runs.errors[q].push_back(weighted_norm(queries[q], weights));
    runs.failed += walked.fails > 0;
    runs.fails += walked.fails;
    runs.steps += walked.steps;
    runs.larger_halves += 2 * std::ssize(methods::smaller_halves(walked.signs, whole)) > sample.n;
    ++runs.seeds;
  }
  return runs;
}

void add_vacuous(CheckContext& context, const Statement& statement, double needed) {
  context.theorem(
      statement, {.bound = 1, .literal = 1, .trivial = 1},
      fmt::format("over the trivial bound; vacuous at every size that is run, and informative from n* {} on",
                  needed < 1e100 ? fmt::format("= {:.2g}", needed) : "beyond 1e100"));
}

Index affordable_walks(const WalkSample& sample, Index seeds) {
  const double work = static_cast<double>(sample.n * sample.n * (sample.d + sample.outputs()));
  return std::min(seeds, std::max<Index>(10, static_cast<Index>(4e8 / work)));
}

void add_fail_row(CheckContext& context, const WalkRuns& runs, Index n, const std::string& params) {
  const double bound = fail_bound(runs.c, n);
  context.theorem({"FAIL", params},
                  {.measured = static_cast<double>(runs.failed) / static_cast<double>(runs.seeds),
                   .bound = bound,
                   .tight = bound,
                   .trivial = 1},
                  fmt::format("seeds with a step beyond c R^2, as {} of all {} steps are", runs.fails, runs.steps),
                  {runs.failed, runs.seeds, std::min(1.0, bound)});
}

void add_ratio_row(CheckContext& context, const WalkRuns& runs, std::span<const QueryRows> queries,
                   const std::string& params) {
  const std::vector<double> ratios = ratios_to_random_signs(runs, queries);
  const Statement statement{"ratio to random signs", params};
  if (ratios.empty()) {
    context.data(statement, {});
    return;
  }
  context.data(statement, {.measured = mean(ratios), .measured_q99 = quantile(ratios, 0.99)},
               fmt::format("root mean square over {} seeds, divided by that of random signs; over queries: median "
                           "{:.3g}, {:.3g} to {:.3g}",
                           runs.seeds, quantile(ratios, 0.5), std::ranges::min(ratios), std::ranges::max(ratios)));
}

}  // namespace kvbench::bounds
