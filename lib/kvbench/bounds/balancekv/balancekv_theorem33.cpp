// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/balancekv_theorem33.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kvbench {
namespace {

struct TreeRuns {
  std::vector<std::vector<double>> errors;       ///< [query][seed]
  std::vector<std::vector<double>> projections;  ///< [query][seed] <z, N> / |N|^2, N the exact sum
  std::int64_t failed = 0, seeds = 0;            ///< seeds with a FAIL
  std::int64_t oversized = 0;                    ///< seeds with some |C^i| > t
  double held = 0;                               ///< mean number of tokens kept
};

class Theorem33Check {
 public:
  Theorem33Check(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                 const Theorem33Setup& setup, const TreeSketch& sketch)
      : context_(context), sample_(sample), setup_(setup), sketch_(sketch), queries_(query_rows(sample, queries)) {
    key_ = radii(sample).key;
    for (const QueryRows& query : queries_) key_ = std::max(key_, 2 * std::log(query.feature_norm));
  }

  void run() {
    const double tail = std::log(2 / setup_.delta);
    const TreeSettings paper = settings("paper", false), halves = settings("tight", false), pairs = settings("tight", true);
    const TreeRuns literal = runs(paper), half = runs(halves), pair = runs(pairs);
    error_row(literal, "halves, literal constants", "paper", tree_bound_of_halves(sample_, halves, tail),
              &QueryTrials::literal);
    const TreeBound of_halves = tree_bound_of_halves(sample_, halves, tail),
                    of_pairs = tree_bound_of_pairs(sample_, pairs, tail);
    error_row(half, "halves, tight constants", "tight", of_halves, &QueryTrials::tight);
    error_row(half, "halves, data constants", "tight", of_halves, &QueryTrials::data);
    error_row(pair, "pairs, tight constants", "tight", of_pairs, &QueryTrials::tight);
    error_row(pair, "pairs, data constants", "tight", of_pairs, &QueryTrials::data);
    mean_row(pair);
    memory_row(half);
  }

 private:
  TreeSettings settings(const std::string& constant, bool pairs) const {
    const Index calls = std::max<Index>(1, total_calls(sample_.n, setup_.t, setup_.levels));
    return {.t = setup_.t,
            .levels = setup_.levels,
            .walk = {.constant = parse_walk_constant("c", constant),
                     .delta = setup_.delta / (2 * static_cast<double>(calls)),
                     .pairs = pairs,
                     .scale = sample_.scale},
            .value_radius = radii(sample_).value};
  }

  TreeRuns runs(const TreeSettings& settings) const {
    TreeRuns all{.errors = {queries_.size(), std::vector<double>{}}, .projections = {queries_.size(), std::vector<double>{}}};
    for (Index seed = 0; seed < setup_.seeds; ++seed) {
      context_.poll();
      const TreeOutcome outcome = sketch_(sample_, settings, static_cast<std::uint32_t>(seed));
      std::vector<double> missing = outcome.weights;
      for (double& weight : missing) weight -= 1;
      for (std::size_t q = 0; q < queries_.size(); ++q) {
        all.errors[q].push_back(weighted_norm(queries_[q], missing));
        all.projections[q].push_back(projection(queries_[q], outcome.weights));
      }
      all.failed += outcome.fails > 0;
      all.oversized +=
          std::ranges::any_of(outcome.sizes.begin(), outcome.sizes.end() - 1, [&](Index x) { return x > setup_.t; });
      for (const Index size : outcome.sizes) all.held += static_cast<double>(size) / static_cast<double>(setup_.seeds);
      ++all.seeds;
    }
    return all;
  }

  /// <z, N> / |N|^2.
  static double projection(const QueryRows& query, const std::vector<double>& weights) {
    const std::vector<double> total = query.total();
    double product = 0, square = 0;
    for (const double x : total) square += x * x;
    for (std::size_t i = 0; i < query.rows.size(); ++i) {
      const std::size_t s = total.size();
      product += weights[i / s] * query.rows[i] * total[i % s];
    }
    return square > 0 ? product / square : 1;
  }

  std::string params(const std::string& constant) const {
    return fmt::format("{};n={};t={};T={};s={};a r^2={:.3g};c={}", sample_.dv == 0 ? "v=1" : "values", sample_.n, setup_.t,
                       setup_.levels, sample_.outputs(), key_, constant);
  }

  void error_row(const TreeRuns& runs, const std::string& part, const std::string& constant, const TreeBound& bound,
                 double QueryTrials::*decides) {
    const Radii radius = radii(sample_);
    const double s = static_cast<double>(sample_.outputs()), n = static_cast<double>(sample_.n);
    const double literal = 30 * std::sqrt(s) * std::log(s * n / setup_.delta) * static_cast<double>(setup_.levels) * n /
                           static_cast<double>(setup_.t) * std::exp(key_) * radius.value;
    std::vector<QueryTrials> trials;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      const double unit = radius.r() * queries_[q].feature_norm;
      QueryTrials trial{.literal = literal,
                        .tight = bound.tight * unit,
                        .data = bound.data * unit,
                        .trivial = queries_[q].absolute,
                        .errors = runs.errors[q]};
      trial.bound = trial.*decides;
      trials.push_back(std::move(trial));
    }
    CheckRow& row = context_.add(CheckKind::theorem, part);
    row.params = params(constant);
    row.text = fmt::format("trivial bound: the sum of all lengths; {} of {} seeds with a FAIL; {:.4g} of {} tokens kept",
                           runs.failed, runs.seeds, runs.held, sample_.n);
    fill_worst_query(row, trials, setup_.delta);
  }

  void mean_row(const TreeRuns& runs) {
    CheckRow& row = context_.add(CheckKind::law, "pairs, z is unbiased");
    row.params = params("tight");
    row.bound = 1;
    double smallest = 2;
    for (const std::vector<double>& values : runs.projections) {
      const double p = mean_test(values, 1);
      if (p >= smallest) continue;
      smallest = p;
      row.measured = mean(values);
      row.measured_q99 = quantile(values, 0.99);
    }
    row.p_value = std::min(1.0, smallest * static_cast<double>(queries_.size()));
    row.text = fmt::format("<z, N> / |N|^2 with the exact sum N; worst of {} queries", queries_.size());
  }

  void memory_row(const TreeRuns& runs) {
    CheckRow& row = context_.add(CheckKind::exact, "|C^i| <= t below C^T");
    row.params = params("tight");
    row.count_exceptions(runs.oversized, runs.seeds);
    row.measured = runs.held;
    row.bound = static_cast<double>(setup_.t * (setup_.levels + 1));
    row.text = "measured: tokens kept at the end; bound: t (T + 1)";
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
}

}  // namespace

double mean_test(std::span<const double> values, double expected) {
  const double error = standard_error(values), away = std::abs(mean(values) - expected);
  if (away <= 1e-9 * std::abs(expected)) return 1;
  return error == 0 ? 0 : std::erfc(away / error / std::numbers::sqrt2);
}

void check_theorem33(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem33Setup& setup, const TreeSketch& sketch) {
  if (sample.n < 2 * setup.t) {
    throw Unavailable(fmt::format("{} tokens are fewer than two batches of {}", sample.n, setup.t));
  }
  Theorem33Check(context, sample, queries, setup, sketch).run();
}

Claim balancekv_theorem33() {
  return {.id = "balancekv.thm33",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.3 and Algorithm 3",
          .statement = "merge-and-reduce approximates the sum of every query, with t tokens per level",
          .method = "balancekv",
          .run = run_balancekv_theorem33};
}

}  // namespace kvbench
