// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.2: for any q, with probability at least 1 - delta,
//   |sum_{C'} e^{a<k,q>} v - sum_{C \ C'} e^{a<k,q>} v|_2 <= O( sqrt(s) log(n s/delta) e^{a|q|^2/2} e^{a max|k|^2/2}
//   max|v| ),
// a = 1/sqrt(d), s the dimension of v, and |C'| <= n/2. Algorithm 2 is the walk.
//
// Readings. The logarithm is natural. The only constant in the text is the 30 of c = 30 ln(n/delta): `literal` reads
// O(x) as 30 x. FAIL events count as failures of the theorem: half of delta is for FAIL, half for the tail of the tight
// and data bounds. docs/theory/balancekv.thm32.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>

namespace kvbench::bounds {
namespace {

class Theorem32Check {
 public:
  Theorem32Check(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                 const Theorem32Setup& setup, const SignWalk& walk)
      : context_(context), sample_(sample), setup_(setup), walk_(walk), queries_(query_rows(sample, queries)) {}

  void run() {
    if (sample_.n == 0) throw methods::Unavailable("there are no tokens to balance");
    const WalkRuns paper = walks("paper", setup_.seeds_of_ratios), tight = walks("tight", setup_.seeds);
    discrepancy(tight, "tight", &QueryTrials::tight);
    discrepancy(tight, "data", &QueryTrials::data);
    add_constant(context_, params("paper", paper), trials(paper, &QueryTrials::literal), setup_.delta, 30,
                 "sqrt(s) ln(n s/delta) R |phi(q)|");
    context_.exact({"C' holds at most half", params("tight", tight)}, tight.larger_halves, tight.seeds);
    show(paper, "paper");
    show(tight, "tight");
    for (const char* name : {"3", "1", "greedy"}) show(walks(name, setup_.seeds_of_ratios), name);
  }

  void run_literal() { discrepancy(walks("paper", setup_.seeds), "literal", &QueryTrials::literal); }
  /// Of the literal bound to the trivial one, for the best query.
  double literal_ratio() const {
    double least = INFINITY;
    for (const QueryTrials& trial :
         trials({.errors = {queries_.size(), std::vector<double>{}}}, &QueryTrials::literal)) {
      least = std::min(least, trial.literal / trial.trivial);
    }
    return least;
  }

 private:
  WalkRuns walks(const std::string& name, Index seeds) {
    // Half of delta is for FAIL, half for the tail of the bound.
    const methods::WalkSettings settings{
        .constant = methods::parse_walk_constant("c", name), .delta = setup_.delta / 2, .scale = sample_.scale};
    return run_walks(sample_, queries_, settings, seeds, walk_, context_);
  }

  std::string params(const std::string& constant, const WalkRuns& runs) const {
    std::string text =
        fmt::format("n={};s={};a|k|^2={:.3g};c={}", sample_.n, sample_.outputs(), radii(sample_).key, constant);
    if (runs.c > 0 && constant != fmt::format("{}", runs.c)) text += fmt::format("={:.4g}", runs.c);
    return text;
  }

  std::vector<QueryTrials> trials(const WalkRuns& runs, double QueryTrials::*decides) const {
    const double tail = std::log(2 / setup_.delta);
    const Radii radius = radii(sample_);
    const double spread = sub_gaussian_norm(sample_.outputs(), tail);
    const auto s = static_cast<double>(sample_.outputs()), n = static_cast<double>(sample_.n);
    const std::vector<double> norms2 = relative_norms2(sample_);
    const double tight_c = methods::WalkConstant{methods::WalkConstant::Kind::tight}.of(sample_.n, setup_.delta / 2);
    std::vector<QueryTrials> trials;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      const auto bound = [&](double factor) { return queries_[q].bound(factor, radius); };
      QueryTrials trial{.literal = bound(30 * std::sqrt(s) * std::log(n * s / setup_.delta)),
                        .tight = bound(std::sqrt(sub_gaussian(tight_c)) * spread),
                        .data = bound(std::sqrt(sub_gaussian(tight_c, norms2)) * spread),
                        .trivial = queries_[q].absolute,
                        .errors = runs.errors[q]};
      trial.bound = trial.*decides;
      trials.push_back(std::move(trial));
    }
    return trials;
  }

  void discrepancy(const WalkRuns& runs, const std::string& tier, double QueryTrials::*decides) {
    add_theorem(
        context_, {"discrepancy, " + tier + " constants", params(tier == "literal" ? "paper" : "tight", runs)},
        trials(runs, decides), setup_.delta,
        fmt::format("trivial bound: the sum of all lengths; {} of {} seeds with a FAIL", runs.failed, runs.seeds));
  }

  void show(const WalkRuns& runs, const std::string& constant) {
    if (runs.c > 0) add_fail_row(context_, runs, sample_.n, params(constant, runs));
    add_ratio_row(context_, runs, queries_, params(constant, runs));
  }

  CheckContext& context_;
  const WalkSample& sample_;
  const Theorem32Setup& setup_;
  const SignWalk& walk_;
  std::vector<QueryRows> queries_;
};

void run_balancekv_theorem32(CheckContext& context) {
  const Theorem32Setup setup{.delta = context.options.delta,
                             .seeds = context.options.seeds,
                             .seeds_of_ratios = std::min<Index>(context.options.seeds, 100)};
  check_theorem32(context, walk_sample(*context.subject, setup.tokens, true), context.subject->queries, setup,
                  library_walk(context.backend));
  check_theorem32_literal(context, *context.subject, setup, library_walk(context.backend));
}

}  // namespace

void check_theorem32(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem32Setup& setup, const SignWalk& walk) {
  Theorem32Check(context, sample, queries, setup, walk).run();
}

void check_theorem32_literal(CheckContext& context, const Subject& subject, const Theorem32Setup& setup,
                             const SignWalk& walk) {
  InformativeSize size;
  for (const bool with_values : {true, false}) {
    size = informative_size(std::min(subject.tokens(), longest_literal), [&](Index n) {
      const WalkSample sample = walk_sample(subject, n, with_values);
      return Theorem32Check(context, sample, subject.queries, setup, walk).literal_ratio();
    });
    if (size.n == 0) continue;
    const WalkSample sample = walk_sample(subject, size.n, with_values);
    Theorem32Setup at = setup;
    at.seeds = affordable_walks(sample, setup.seeds);
    Theorem32Check(context, sample, subject.queries, at, walk).run_literal();
    return;
  }
  add_vacuous(context,
              {"discrepancy, literal constants", fmt::format("v=1;n<={}", std::min(subject.tokens(), longest_literal))},
              size.needed);
}

Check balancekv_theorem32() {
  return {.id = "balancekv.thm32",
          .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.2 and Algorithm 2",
          .statement = "the signed sum of a walk is short for every query, and the walk rarely FAILs",
          .run = run_balancekv_theorem32};
}

}  // namespace kvbench::bounds
