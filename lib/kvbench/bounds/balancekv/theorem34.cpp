// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.4 (Theorem 1.1 of Alweiss, Liu, Sawhney, 2021) and Algorithm 4: for vectors
// u_1 .. u_n and any u, with probability at least 1 - delta,
//   |sum_{U'} <u_i, u> - sum_{U \ U'} <u_i, u>| <= O( log(n/delta) max|u_i| |u| ),   the walk with c = 30 ln(n/delta).
//
// Here u_i are the keys of a head and u its queries: the walk of Algorithm 2 on logits of zero, with these vectors as
// values. `literal` reads O(x) as 30 x. The number of steps enters the bound through ln n alone, so the bound is tested
// at two lengths. docs/theory/balancekv.thm34.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::bounds {
namespace {

std::vector<QueryTrials> trials_of(const CheckContext& context, const PlainVectors& vectors, const WalkRuns& runs,
                                   double QueryTrials::*decides) {
  const double delta = context.options.delta, n = static_cast<double>(vectors.sample.n);
  const Radii radius = radii(vectors.sample);
  const double c = methods::WalkConstant{methods::WalkConstant::Kind::tight}.of(vectors.sample.n, delta / 2);
  // The half of delta that is not for FAIL is divided between the two tails of one dimension.
  const double tail = std::sqrt(2 * std::log(4 / delta));
  std::vector<QueryTrials> trials;
  for (std::size_t q = 0; q < vectors.queries.size(); ++q) {
    const auto bound = [&](double factor) { return vectors.queries[q].bound(factor, radius); };
    QueryTrials trial{.literal = bound(30 * std::log(n / delta)),
                      .tight = bound(std::sqrt(sub_gaussian(c)) * tail),
                      .data = bound(std::sqrt(sub_gaussian(c, relative_norms2(vectors.sample))) * tail),
                      .trivial = vectors.queries[q].absolute,
                      .errors = runs.errors[q]};
    trial.bound = trial.*decides;
    trials.push_back(std::move(trial));
  }
  return trials;
}

void add_discrepancy(CheckContext& context, const PlainVectors& vectors, const WalkRuns& runs, const std::string& tier,
                     double QueryTrials::*decides, const std::string& params) {
  add_theorem(
      context, {"discrepancy, " + tier + " constants", params}, trials_of(context, vectors, runs, decides),
      context.options.delta,
      fmt::format("trivial bound: the sum of all |<u_i, u>|; {} of {} seeds with a FAIL", runs.failed, runs.seeds));
}

/// Over the queries, for each seed.
std::vector<double> root_mean_squares(const WalkRuns& runs) {
  std::vector<double> all(static_cast<std::size_t>(runs.seeds));
  for (const std::vector<double>& of_query : runs.errors) {
    for (std::size_t seed = 0; seed < all.size(); ++seed) all[seed] += of_query[seed] * of_query[seed];
  }
  for (double& x : all) x = std::sqrt(x / static_cast<double>(runs.errors.size()));
  return all;
}

void run_balancekv_theorem34(CheckContext& context) {
  const auto vectors_of = [&](Index n) {
    PlainVectors vectors = plain_vectors(context.subject->keys, context.subject->queries, context.subject->d(), n);
    vectors.sample.head = context.subject->head;
    return vectors;
  };
  for (const Index n : {64, 256}) {
    if (n > 64 && context.subject->tokens() <= 64) break;
    PlainVectors vectors = plain_vectors(context.subject->keys, context.subject->queries, context.subject->d(), n);
    vectors.sample.head = context.subject->head;
    check_theorem34(context, vectors, n > 64 ? std::min<Index>(context.options.seeds, 100) : context.options.seeds,
                    library_walk(context.backend));
  }
  check_theorem34_literal(context, context.subject->tokens(), vectors_of, library_walk(context.backend));
  check_theorem34_rate(context, context.subject->tokens(), vectors_of, library_walk(context.backend));
}

}  // namespace

PlainVectors plain_vectors(const std::vector<float>& vectors, const std::vector<float>& directions, Index d, Index n) {
  PlainVectors plain;
  WalkSample& sample = plain.sample;
  sample = {.n = std::min(n, static_cast<Index>(vectors.size()) / d), .d = 1, .dv = d};
  sample.keys.assign(static_cast<std::size_t>(sample.n), 0);
  sample.values.assign(vectors.begin(), vectors.begin() + sample.n * d);
  for (Index q = 0; q < static_cast<Index>(directions.size()) / d; ++q) {
    const std::span<const float> u(directions.data() + q * d, static_cast<std::size_t>(d));
    QueryRows& rows = plain.queries.emplace_back();
    rows.log_feature_norm = std::log(squared_norm(u)) / 2;
    double squares = 0;
    for (Index i = 0; i < sample.n; ++i) {
      const double product = dot(sample.value(i), u);
      rows.rows.push_back(product);
      rows.absolute += std::abs(product);
      squares += product * product;
    }
    rows.random_signs = std::sqrt(squares);
  }
  return plain;
}

void check_theorem34(CheckContext& context, const PlainVectors& vectors, Index seeds, const SignWalk& walk) {
  if (vectors.sample.n == 0) throw methods::Unavailable("there are no vectors to balance");
  for (const std::string constant : {"paper", "tight"}) {
    const methods::WalkSettings settings{
        .constant = methods::parse_walk_constant("c", constant), .delta = context.options.delta / 2, .scale = 1};
    const WalkRuns runs = run_walks(vectors.sample, vectors.queries, settings, seeds, walk, context);
    const std::string params =
        fmt::format("n={};d={};c={}={:.4g}", vectors.sample.n, vectors.sample.dv, constant, runs.c);
    if (constant == "paper") {
      add_constant(context, params, trials_of(context, vectors, runs, &QueryTrials::literal), context.options.delta, 30,
                   "ln(n/delta) max|u_i| |u|");
    } else {
      add_discrepancy(context, vectors, runs, "tight", &QueryTrials::tight, params);
      add_discrepancy(context, vectors, runs, "data", &QueryTrials::data, params);
    }
    add_fail_row(context, runs, vectors.sample.n, params);
    add_ratio_row(context, runs, vectors.queries, params);
  }
}

void check_theorem34_literal(CheckContext& context, Index tokens, const std::function<PlainVectors(Index)>& vectors_of,
                             const SignWalk& walk) {
  const Index most = std::min(tokens, longest_literal);
  const InformativeSize size = informative_size(most, [&](Index n) {
    const PlainVectors vectors = vectors_of(n);
    double least = INFINITY;
    const WalkRuns none{.errors = {vectors.queries.size(), std::vector<double>{}}};
    for (const QueryTrials& trial : trials_of(context, vectors, none, &QueryTrials::literal)) {
      least = std::min(least, trial.literal / trial.trivial);
    }
    return least;
  });
  if (size.n == 0) {
    add_vacuous(context, {"discrepancy, literal constants", fmt::format("n<={}", most)}, size.needed);
    return;
  }
  const PlainVectors vectors = vectors_of(size.n);
  const WalkRuns runs =
      run_walks(vectors.sample, vectors.queries,
                {.constant = {methods::WalkConstant::Kind::paper}, .delta = context.options.delta / 2, .scale = 1},
                affordable_walks(vectors.sample, context.options.seeds), walk, context);
  add_discrepancy(context, vectors, runs, "literal", &QueryTrials::literal,
                  fmt::format("n={};c=paper={:.4g}", size.n, runs.c));
}

void check_theorem34_rate(CheckContext& context, Index tokens, const std::function<PlainVectors(Index)>& vectors_of,
                          const SignWalk& walk) {
  for (const char* constant : {"tight", "1"}) {
    std::vector<double> lengths;
    std::vector<std::vector<double>> errors;
    for (Index n = 64; n <= std::min<Index>(tokens, 4096); n *= 2) {
      const PlainVectors vectors = vectors_of(n);
      const methods::WalkSettings settings{
          .constant = methods::parse_walk_constant("c", constant), .delta = context.options.delta, .scale = 1};
      const WalkRuns runs = run_walks(vectors.sample, vectors.queries, settings, 16, walk, context);
      lengths.push_back(static_cast<double>(n));
      errors.push_back(root_mean_squares(runs));
    }
    if (lengths.size() < 2) return;
    add_rate(context, {"slope of ln(discrepancy) over ln n", fmt::format("n=64..{};c={}", lengths.back(), constant)},
             error_rate(lengths, errors), 0,
             "the theorem has ln n, slope about 0; fair coins have 1/2; root mean square over queries");
  }
}

Check balancekv_theorem34() {
  return {.id = "balancekv.thm34",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.4 and Algorithm 4",
          .statement = "the signed sum of a walk over vectors is short in every direction, for any number of vectors",
          .run = run_balancekv_theorem34};
}

}  // namespace kvbench::bounds
