// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.3: MergeAndReduce with batches of t = O*(e^{2 a r^2} / eps) and T = log2(n/t)
// gives C^0 .. C^T whose sums, weighted by 2^i, satisfy with probability at least 1 - 1/poly(n)
//   |sum_{i <= j} e^{a<k_i,q>} v_i - z_j|_2 <= eps j e^{-a r^2} max|v|.
//
// The check is the converse: t and T are given, and the error is compared with what the proof states for them:
//   literal  30 sqrt(s) ln(s n / delta) T (j/t) e^{a r^2} max|v|, r the longest of keys and queries: the formula of the
//            proof with 30 for O, as in Theorem 3.2, and 1/poly(n) read as the delta of the run;
//   tight    halves: the bounds of all calls add, as in the proof, each with the constants of Theorem 3.2; pairs: both
//            halves are equally likely to be kept, so that variances add and the factor T disappears.
// With pairs, z_j is unbiased, which has a sharper test of its own. docs/theory/balancekv.thm33.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/bounds/trials/law_tests.hpp>

namespace kvbench::bounds {
namespace {

struct TreeRuns {
  std::vector<std::vector<double>> errors;  ///< [query][seed]
  std::int64_t failed = 0, seeds = 0;       ///< seeds with a FAIL
  std::int64_t oversized = 0;               ///< seeds with some |C^i| > t
  double held = 0;                          ///< mean number of tokens kept
};

class Theorem33Check {
 public:
  Theorem33Check(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                 const Theorem33Setup& setup, const TreeSketch& sketch)
      : context_(context), sample_(sample), setup_(setup), sketch_(sketch), queries_(query_rows(sample, queries)) {
    key_ = radii(sample).key;
    for (const QueryRows& query : queries_) key_ = std::max(key_, 2 * query.log_feature_norm);
  }

  void run() {
    const double tail = std::log(2 / setup_.delta);
    const TreeSettings halves = settings("tight", false), pairs = settings("tight", true);
    const TreeRuns half = runs(halves), pair = runs(pairs);
    const TreeBound of_halves = tree_bound_of_halves(sample_, halves, tail),
                    of_pairs = tree_bound_of_pairs(sample_, pairs, tail);
    error_row(half, "halves, tight constants", "tight", of_halves, &QueryTrials::tight);
    error_row(half, "halves, data constants", "tight", of_halves, &QueryTrials::data);
    error_row(pair, "pairs, tight constants", "tight", of_pairs, &QueryTrials::tight);
    error_row(pair, "pairs, data constants", "tight", of_pairs, &QueryTrials::data);
    add_constant(context_, params("tight"), trials(half, of_halves, &QueryTrials::literal), setup_.delta, 30,
                 "sqrt(s) ln(s n/delta) T (n/t) e^(a r^2) max|v|");
    mean_row(pairs);
    memory_row(half);
  }

  void run_literal() {
    error_row(runs(settings("paper", false)), "halves, literal constants", "paper", {}, &QueryTrials::literal);
  }
  /// Of the literal bound to the trivial one, for the best query.
  double literal_ratio() const {
    double least = INFINITY;
    for (const QueryTrials& trial :
         trials({.errors = {queries_.size(), std::vector<double>{}}}, {}, &QueryTrials::literal)) {
      least = std::min(least, trial.literal / trial.trivial);
    }
    return least;
  }

 private:
  TreeSettings settings(const std::string& constant, bool pairs) const {
    const Index calls = std::max<Index>(1, total_calls(sample_.n, setup_.t, setup_.levels));
    return {.t = setup_.t,
            .levels = setup_.levels,
            .walk = {.constant = methods::parse_walk_constant("c", constant),
                     .delta = setup_.delta / (2 * static_cast<double>(calls)),
                     .pairs = pairs,
                     .scale = sample_.scale},
            .value_radius = radii(sample_).value};
  }

  TreeRuns runs(const TreeSettings& settings) const {
    TreeRuns all{.errors = {queries_.size(), std::vector<double>{}}};
    for (Index seed = 0; seed < setup_.seeds; ++seed) {
      context_.poll();
      const TreeOutcome outcome = sketch_(sample_, settings, context_.seed(seed));
      std::vector<double> missing = outcome.weights;
      for (double& weight : missing) weight -= 1;
      for (std::size_t q = 0; q < queries_.size(); ++q) all.errors[q].push_back(weighted_norm(queries_[q], missing));
      all.failed += outcome.fails > 0;
      all.oversized +=
          std::ranges::any_of(outcome.sizes.begin(), outcome.sizes.end() - 1, [&](Index x) { return x > setup_.t; });
      for (const Index size : outcome.sizes) all.held += static_cast<double>(size) / static_cast<double>(setup_.seeds);
      ++all.seeds;
    }
    return all;
  }

  /// What each call adds to <z, N> / |N|^2, N the exact sum. A tree with one level less has made the same calls but
  /// those of the last level, so the difference of the two, over the tokens of a call, is the call's own error.
  std::vector<double> call_errors(const QueryRows& query, const std::vector<double>& before,
                                  const std::vector<double>& after, Index tokens_of_call) const {
    const std::vector<double> total = query.total();
    const double square = squared_norm(total);
    std::vector<double> errors(static_cast<std::size_t>(sample_.n / tokens_of_call));
    for (std::size_t i = 0; i < before.size() && square > 0; ++i) {
      const std::size_t call = i / static_cast<std::size_t>(tokens_of_call), s = total.size();
      if (call >= errors.size() || after[i] == before[i]) continue;
      const std::span<const double> row(query.rows.data() + i * s, s);
      errors[call] += (after[i] - before[i]) * dot(row, total) / square;
    }
    return errors;
  }

  std::string params(const std::string& constant) const {
    return fmt::format("{};n={};t={};T={};s={};a r^2={:.3g};c={}", sample_.dv == 0 ? "v=1" : "values", sample_.n,
                       setup_.t, setup_.levels, sample_.outputs(), key_, constant);
  }

  std::vector<QueryTrials> trials(const TreeRuns& runs, const TreeBound& bound, double QueryTrials::*decides) const {
    const Radii radius = radii(sample_);
    const double s = static_cast<double>(sample_.outputs()), n = static_cast<double>(sample_.n);
    const double literal = 30 * std::sqrt(s) * std::log(s * n / setup_.delta) * static_cast<double>(setup_.levels) * n /
                           static_cast<double>(setup_.t) * radius.value;
    std::vector<QueryTrials> trials;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      QueryTrials trial{.literal = queries_[q].relative(literal, key_),
                        .tight = queries_[q].bound(bound.tight, radius),
                        .data = queries_[q].bound(bound.data, radius),
                        .trivial = queries_[q].absolute,
                        .errors = runs.errors[q]};
      trial.bound = trial.*decides;
      trials.push_back(std::move(trial));
    }
    return trials;
  }

  void error_row(const TreeRuns& runs, const std::string& part, const std::string& constant, const TreeBound& bound,
                 double QueryTrials::*decides) {
    add_theorem(context_, {part, params(constant)}, trials(runs, bound, decides), setup_.delta,
                fmt::format("trivial bound: the sum of all lengths; {} of {} seeds with a FAIL; {:.4g} of {} tokens "
                            "kept",
                            runs.failed, runs.seeds, runs.held, sample_.n));
  }

  /// Given the lists that a call receives, the opposite of all its signs is equally likely: its error is as likely as
  /// its negative, with clamped probabilities and at any number of seeds.
  void mean_row(TreeSettings settings) {
    std::vector<std::vector<double>> errors(queries_.size());
    for (Index seed = 0; seed < setup_.seeds; ++seed) {
      std::vector<double> before(static_cast<std::size_t>(sample_.n), 1.0);
      for (settings.levels = 1; settings.levels <= setup_.levels; ++settings.levels) {
        context_.poll();
        const std::vector<double> after = sketch_(sample_, settings, context_.seed(seed)).weights;
        for (std::size_t q = 0; q < queries_.size(); ++q) {
          std::ranges::copy(call_errors(queries_[q], before, after, setup_.t << (settings.levels - 1)),
                            std::back_inserter(errors[q]));
        }
        before = after;
      }
    }
    double smallest = 2, ratio = NAN;
    for (const std::vector<double>& of_query : errors) {
      const double p = symmetry_test(of_query);
      if (p >= smallest) continue;
      smallest = p;
      ratio = 1 + std::accumulate(of_query.begin(), of_query.end(), 0.0) / static_cast<double>(setup_.seeds);
    }
    context_.law(
        {"pairs, z is unbiased", params("tight")}, smallest * static_cast<double>(queries_.size()),
        fmt::format("mean of <z, N> / |N|^2 with the exact sum N; the errors of the calls are symmetric; worst of {} "
                    "queries",
                    queries_.size()),
        ratio);
  }

  void memory_row(const TreeRuns& runs) {
    context_.exact({"|C^i| <= t below C^T", params("tight")}, runs.oversized, runs.seeds,
                   "measured: tokens kept at the end; bound: t (T + 1)",
                   {.measured = runs.held, .bound = static_cast<double>(setup_.t * (setup_.levels + 1))});
  }

  CheckContext& context_;
  const WalkSample& sample_;
  const Theorem33Setup& setup_;
  const TreeSketch& sketch_;
  std::vector<QueryRows> queries_;
  double key_ = 0;  ///< a r^2, r of keys and queries
};

void run_balancekv_theorem33(CheckContext& context) {
  const Theorem33Setup setup{.delta = context.options.delta, .seeds = std::min<Index>(context.options.seeds, 200)};
  // Each seed takes three trees over 256 tokens: half the seeds and queries of faster checks.
  const std::vector<float> queries = evenly_spaced_rows(context.subject->queries, context.subject->d(), 4);
  for (const bool with_values : {false, true}) {
    check_theorem33(context, walk_sample(*context.subject, setup.t << setup.levels, with_values), queries, setup,
                    library_tree(context.backend));
  }
  check_theorem33_literal(context, *context.subject, setup, library_tree(context.backend));
}

}  // namespace

void check_theorem33(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem33Setup& setup, const TreeSketch& sketch) {
  if (sample.n < 2 * setup.t) {
    throw methods::Unavailable(fmt::format("{} tokens are fewer than two batches of {}", sample.n, setup.t));
  }
  Theorem33Check(context, sample, queries, setup, sketch).run();
}

void check_theorem33_literal(CheckContext& context, const Subject& subject, const Theorem33Setup& setup,
                             const TreeSketch& sketch) {
  const Index most = std::min(subject.tokens(), longest_literal);
  const auto at = [&](Index n) {
    Theorem33Setup half = setup;
    half.t = n / 2, half.levels = 1;
    return half;
  };
  InformativeSize size;
  for (const bool with_values : {true, false}) {
    size = informative_size(most, [&](Index n) {
      const WalkSample sample = walk_sample(subject, n, with_values);
      const Theorem33Setup half = at(n);
      return Theorem33Check(context, sample, subject.queries, half, sketch).literal_ratio();
    });
    if (size.n == 0) continue;
    const WalkSample sample = walk_sample(subject, size.n, with_values);
    Theorem33Setup half = at(size.n);
    half.seeds = affordable_walks(sample, setup.seeds);
    Theorem33Check(context, sample, subject.queries, half, sketch).run_literal();
    return;
  }
  add_vacuous(context, {"halves, literal constants", fmt::format("v=1;t=n/2;T=1;n<={}", most)}, size.needed);
}

Check balancekv_theorem33() {
  return {.id = "balancekv.thm33",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.3 and Algorithm 3",
          .statement = "merge-and-reduce approximates the sum of every query, with t tokens per level",
          .run = run_balancekv_theorem33};
}

}  // namespace kvbench::bounds
