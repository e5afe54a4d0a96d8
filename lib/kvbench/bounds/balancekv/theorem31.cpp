// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1: Algorithm 1 with batches of t = O*(e^{2 a r^2} / eps) and T = log2(n/t)
// gives z_j with probability at least 1 - 1/poly(n), in memory O*(e^{2 a r^2} / eps), such that (Eq. 2)
//   |z_j - Attn(q_j, K_j, V_j)|_2 <= eps |softmax(K_j q_j)|_2 |V_j|_F.
//
// The check runs `balancekv` mode=stream of the registry, at given t and T, with half=exact and the tight constant. z =
// N'/D', and |D' - D| <= b_D < D, |N' - N| <= b_N give |z - Attn| <= (b_N + |Attn| b_D) / (D - b_D). Buckets of N have
// independent draws: their variances add. The denominator, and the step eps j e^{-a r^2} <= eps D of the proof, have
// rows of their own. docs/theory/balancekv.thm31.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::bounds {
namespace {

double length(const std::vector<double>& x) { return std::sqrt(squared_norm(x)); }

/// One query: the exact sums, and bounds on their errors.
struct StreamQuery {
  QueryRows num, den;
  double total = 0;           ///< D
  std::vector<double> exact;  ///< Attn
  double right_side = 0;      ///< |softmax|_2 |V|_F
  double b_num = 0, b_den = 0;

  double error(const TokenWeights& weights) const {
    std::vector<double> sum(exact.size());
    double den_sum = 0;
    for (std::size_t i = 0; i < weights.den.size(); ++i) {
      den_sum += weights.den[i] * den.rows[i];
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += weights.num[i] * num.rows[i * sum.size() + c];
    }
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] = sum[c] / den_sum - exact[c];
    return length(sum);
  }
  double relative_den(const TokenWeights& weights) const {
    double sum = 0;
    for (std::size_t i = 0; i < weights.den.size(); ++i) sum += (weights.den[i] - 1) * den.rows[i];
    return std::abs(sum) / total;
  }
  double tight() const { return b_den < total ? (b_num + length(exact) * b_den) / (total - b_den) : INFINITY; }
};

class Theorem31Check {
 public:
  Theorem31Check(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                 const Theorem31Setup& setup, const StreamSketch& sketch)
      : context_(context), sample_(sample), setup_(setup), sketch_(sketch), radius_(radii(sample)) {
    prepare(queries);
    bound_sums();
  }

  void run() {
    std::vector<QueryTrials> outputs(queries_.size()), sums(queries_.size());
    for (Index seed = 0; seed < setup_.seeds; ++seed) {
      context_.poll();
      const TokenWeights weights = sketch_(context_.seed(seed));
      for (std::size_t q = 0; q < queries_.size(); ++q) {
        outputs[q].errors.push_back(queries_[q].error(weights) / queries_[q].right_side);
        sums[q].errors.push_back(queries_[q].relative_den(weights));
      }
      held_den_ += static_cast<double>(std::ranges::count_if(weights.den, [](double w) { return w > 0; }));
      held_num_ += static_cast<double>(std::ranges::count_if(weights.num, [](double w) { return w > 0; }));
    }
    equation2(outputs);
    denominator(sums);
    looseness();
    if (context_.subject == nullptr) return;
    literal_memory();
    tight_memory();
  }

 private:
  void prepare(const std::vector<float>& queries) {
    WalkSample ones = sample_;
    ones.dv = 0;
    const auto num = query_rows(sample_, queries), den = query_rows(ones, queries);
    double frobenius2 = 0;
    for (Index i = 0; i < sample_.n; ++i) frobenius2 += std::pow(value_norm(sample_, i), 2);
    key_ = radius_.key;
    for (std::size_t q = 0; q < num.size(); ++q) {
      StreamQuery& query = queries_.emplace_back(StreamQuery{.num = num[q], .den = den[q]});
      query.total = den[q].absolute;
      query.exact = num[q].total();
      for (double& x : query.exact) x /= query.total;
      query.right_side = den[q].random_signs / query.total * std::sqrt(frobenius2);
      key_ = std::max(key_, 2 * den[q].log_feature_norm);
    }
  }

  TreeSettings tree(double call_delta) const {
    return {.t = setup_.t,
            .levels = setup_.levels,
            .walk = {.constant = {methods::WalkConstant::Kind::tight},
                     .delta = call_delta,
                     .pairs = true,
                     .scale = sample_.scale}};
  }

  void bound_sums() {
    const double tail = std::log(4 / setup_.delta);  // N and D share the half of delta that FAIL leaves
    const TreeSettings settings = tree(delta_of_calls(sample_, setup_));
    const double cut = setup_.eps / (2 * static_cast<double>(sample_.n)) * std::exp(-radius_.key) * radius_.value;
    double variance = 0;
    std::vector<double> dropped(queries_.size());
    kept_buckets_ = 0;
    for (const auto& [bucket, tokens] : norm_buckets(sample_)) {
      if (std::ldexp(1.0, bucket) <= cut) {
        for (std::size_t q = 0; q < queries_.size(); ++q) {
          for (const Index i : tokens)
            dropped[q] += queries_[q].den.rows[static_cast<std::size_t>(i)] * value_norm(sample_, i);
        }
        continue;
      }
      const double sigma = std::ldexp(tree_spread_of_pairs(std::ssize(tokens), settings, true), bucket);
      variance += sigma * sigma;
      ++kept_buckets_;
    }
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      // The lengths of the values are part of `variance`.
      const QueryRows& rows = queries_[q].den;
      const Radii keys{.key = radius_.key};
      queries_[q].b_num = rows.bound(std::sqrt(variance) * sub_gaussian_norm(sample_.dv, tail), keys) + dropped[q];
      queries_[q].b_den =
          rows.bound(tree_spread_of_pairs(sample_.n, settings, false) * sub_gaussian_norm(1, tail), keys);
    }
  }

  std::string params() const {
    return fmt::format("n={};t={};T={};s={};a r^2={:.3g};buckets={}", sample_.n, setup_.t, setup_.levels, sample_.dv,
                       key_, kept_buckets_);
  }

  /// Errors over the right side of Eq. 2, that is, the eps that was reached.
  void equation2(std::vector<QueryTrials>& trials) {
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      trials[q].tight = trials[q].bound = queries_[q].tight() / queries_[q].right_side;
      trials[q].trivial = length(queries_[q].exact) / queries_[q].right_side;  // the error of an output of 0
    }
    std::vector<double> medians;
    for (const QueryTrials& trial : trials) medians.push_back(quantile(trial.errors, 0.5));
    add_theorem(context_, {"Eq. 2, tight constants", params()}, trials, setup_.delta,
                fmt::format("errors over |softmax| |V|_F; trivial: an output of 0; median over queries of the median "
                            "error {:.3g}; of {} tokens, N keeps {:.4g} and D {:.4g} on average",
                            quantile(medians, 0.5), sample_.n, held_num_ / static_cast<double>(setup_.seeds),
                            held_den_ / static_cast<double>(setup_.seeds)));
    const double s = static_cast<double>(sample_.dv), n = static_cast<double>(sample_.n);
    const double shape =
        std::pow(std::log(s * n), 2) * std::sqrt(s) * std::exp(2 * key_) / static_cast<double>(setup_.t);
    std::vector<BoundShape> shapes;
    for (const QueryTrials& trial : trials) shapes.push_back({.shape = shape, .errors = trial.errors});
    // 30 for O, and 3 for the rescaling of eps.
    add_constant(context_, params(), shapes, setup_.delta, 90, "ln^2(s n) sqrt(s) e^(2 a r^2) / t");
  }

  void denominator(std::vector<QueryTrials>& trials) {
    for (std::size_t q = 0; q < queries_.size(); ++q) {
      trials[q].tight = trials[q].bound = queries_[q].b_den / queries_[q].total;
      trials[q].trivial = 1;
    }
    add_theorem(context_, {"|D'/D - 1|, tight constants", params()}, trials, setup_.delta);
  }

  void looseness() {
    std::vector<double> ratios;
    for (const StreamQuery& query : queries_) {
      ratios.push_back(std::log(query.total / static_cast<double>(sample_.n)) + query.den.shift + key_);
    }
    context_.data({"ln(D e^{a r^2} / j)", params()}, {.measured = mean(ratios), .measured_q99 = quantile(ratios, 0.99)},
                  fmt::format("logarithm of the factor that the step eps j e^(-a r^2) <= eps D of the proof loses: "
                              "median {:.3g}, {:.3g} to {:.3g}",
                              quantile(ratios, 0.5), std::ranges::min(ratios), std::ranges::max(ratios)));
  }

  /// eps that the derivation grants at t and T, for the worst query.
  double granted(Index t, Index levels) {
    setup_.t = t;
    setup_.levels = levels;
    bound_sums();
    double eps = 0;
    for (const StreamQuery& query : queries_) eps = std::max(eps, query.tight() / query.right_side);
    return eps;
  }

  /// The proof's t for eps / 3, its number of buckets of N, and D, over the exact cache, for n tokens.
  double literal_ratio(double n) const {
    const double s = static_cast<double>(sample_.dv), d = static_cast<double>(sample_.d), eps = setup_.eps / 3;
    const double t = 30 * std::pow(std::log(s * n), 2) * std::sqrt(s) * std::exp(2 * key_) / eps;
    const double levels = std::ceil(std::max(0.0, std::log2(n / t)));
    const double buckets = std::ceil(std::log2(2 * n / eps) + key_ / std::numbers::ln2);
    return t * (levels + 1) * (buckets * (d + s) + d) / (n * (d + s));
  }

  void literal_memory() {
    const auto n = static_cast<double>(context_.subject->tokens());
    const double ratio = literal_ratio(n);
    double needed = n;
    while (literal_ratio(needed) >= 1 && needed < 1e100) needed *= 1.1;
    context_.theorem({"memory at eps, literal constants", fmt::format("eps={};n={};a r^2={:.3g}", setup_.eps, n, key_)},
                     {.bound = ratio, .literal = ratio, .trivial = 1},
                     fmt::format("numbers of all instances over those of the exact cache, at the proof's t for eps / "
                                 "3; below 1 from n* = {} tokens on",
                                 needed < 1e100 ? fmt::format("{:.2g}", needed) : "beyond 1e100"));
  }

  /// The smallest t = 2, 4, 8, .. at which the derivation grants eps on the whole stream, with T = log2(n/t).
  void tight_memory() {
    const Subject& subject = *context_.subject;
    const WalkSample all = walk_sample(subject, subject.tokens(), true);
    Theorem31Check whole(context_, all, subject.queries, setup_, sketch_);
    const std::string part = "memory at eps, tight constants";
    Index t = 2, levels = 0;
    for (; t < all.n; t *= 2) {
      levels = static_cast<Index>(std::ceil(std::log2(static_cast<double>(all.n) / static_cast<double>(t))));
      if (whole.granted(t, levels) <= setup_.eps) break;
    }
    if (t >= all.n) {
      t /= 2, levels = 1;
      const double granted = whole.granted(t, levels);
      context_.theorem(
          {part, fmt::format("eps={};n={};a r^2={:.3g}", setup_.eps, all.n, key_)},
          {.bound = 1, .tight = 1, .trivial = 1},
          fmt::format("no t below n grants eps: t = {} grants {:.3g}, and the bound is the exact cache", t, granted));
      return;
    }
    const double exact = static_cast<double>(all.n * (all.d + all.dv));
    double numbers = static_cast<double>(std::min(all.n, t * (levels + 1)) * all.d);
    for (const auto& [bucket, tokens] : norm_buckets(all)) {
      numbers += static_cast<double>(std::min<Index>(std::ssize(tokens), t * (levels + 1)) * (all.d + all.dv));
    }
    const Theorem31Setup at{.t = t, .levels = levels, .eps = setup_.eps, .delta = setup_.delta};
    const double bound = numbers / exact,
                 measured = numbers_held(subject, at, delta_of_calls(all, at), context_.backend) / exact;
    context_.theorem({part, fmt::format("eps={};n={};t*={};T={};a r^2={:.3g};buckets={}", setup_.eps, all.n, t, levels,
                                        key_, whole.kept_buckets_)},
                     {.measured = measured, .bound = bound, .tight = bound, .trivial = 1},
                     "numbers over those of the exact cache; bound: t (T + 1) tokens of each instance; measured: what "
                     "the method holds at t*",
                     {measured > bound, 1, 0});
  }

  CheckContext& context_;
  const WalkSample& sample_;
  Theorem31Setup setup_;
  const StreamSketch& sketch_;
  Radii radius_;
  std::vector<StreamQuery> queries_;
  double key_ = 0;  ///< a r^2, r of keys and queries
  int kept_buckets_ = 0;
  double held_num_ = 0, held_den_ = 0;
};

void run_balancekv_theorem31(CheckContext& context) {
  const Theorem31Setup setup{
      .eps = context.options.eps, .delta = context.options.delta, .seeds = std::min<Index>(context.options.seeds, 200)};
  const WalkSample sample = walk_sample(*context.subject, setup.t << setup.levels, true);
  if (sample.n == 0 || context.subject->queries.empty())
    throw methods::Unavailable("there are no tokens or no queries");
  if (radii(sample).value == 0) throw methods::Unavailable("all values are zero");
  check_theorem31(context, sample, context.subject->queries, setup,
                  library_stream(*context.subject, sample.n, setup, delta_of_calls(sample, setup), context.backend));
}

}  // namespace

void check_theorem31(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                     const Theorem31Setup& setup, const StreamSketch& sketch) {
  Theorem31Check(context, sample, queries, setup, sketch).run();
}

Check balancekv_theorem31() {
  return {
      .id = "balancekv.thm31",
      .paper = "BalanceKV, arXiv 2502.07861, Theorem 3.1, Eq. 2 and Algorithm 1",
      .statement =
          "the output of a stream is within eps |softmax| |V|_F of attention, in memory of order exp(2 a r^2) / eps",
      .run = run_balancekv_theorem31};
}

}  // namespace kvbench::bounds
