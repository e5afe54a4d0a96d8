// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Theorem 1: with t = Omega(eps^-2 e^{2 delta r} log n), s = Omega(eps^-2 d) and |q| <= r,
//   |z/tau - Attn(q, K, V)| <= eps |softmax(Kq)|_2 |V|_op   (Eq. 3)
// with probability 0.99, in memory O(d (m t + s)) for (m, delta)-clusterable keys.
//
// Reading: "satisfies Eq. (1)" means Eq. (3); the overview's eps^-2 d log n samples are the theorem's Omega(eps^-2 d).
// The constants of Omega are not given: literal numbers take them as 1. Explicit constants:
// docs/theory/subgen.theorem1.md.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/trials/law_tests.hpp>
#include <kvbench/bounds/trials/query_trials.hpp>
#include <kvbench/bounds/trials/rates.hpp>

namespace kvbench::bounds {
namespace {

constexpr double largest_sketch = 60000;  // samples and slots that are still run
constexpr double most_samples = 2e5;      // samples and slots, over all seeds: fewer seeds where sketches are large

/// Unit of Eq. (3): |softmax|_2 |V|_op.
double unit_of(const SubgenQuery& query, const SubgenValues& values) {
  return std::sqrt(query.norm2 * values.op2) / query.total;
}

/// |Attn| in that unit: what answering 0 gets.
double answer_size(const SubgenQuery& query, const SubgenValues& values) {
  return std::sqrt(query.product2 / (query.norm2 * values.op2));
}

/// |z/tau - Attn| <= (eta_z |softmax||V| + eta_tau |Attn|) / (1 - eta_tau).
double combined(double eta_z, double eta_tau, double answer) {
  return eta_tau < 1 ? (eta_z + eta_tau * answer) / (1 - eta_tau) : INFINITY;
}

QueryTrials granted(const CheckContext& context, const SubgenSetup& setup, const SubgenValues& values,
                    const SubgenQuery& query, double r) {
  const Subject& subject = *context.subject;
  const double half = context.options.delta / 2, answer = answer_size(query, values);
  const TauLaw tau = tau_law(query.a, setup);
  const PartitionBounds eta_tau = partition_bounds(tau, setup, query.r, r, subject.tokens(), half);
  const ProductLaw law = product_law(subject, values, query.a, setup.slots);
  const ProductBounds eta_z = product_bounds(law, values, query, setup.slots, subject.d(), half);
  const auto n = static_cast<double>(subject.tokens()), t = static_cast<double>(setup.params.t);
  QueryTrials trials{.trivial = answer};
  trials.literal = std::max(std::sqrt(static_cast<double>(subject.d()) / static_cast<double>(setup.slots)),
                            std::exp(setup.delta() * r) * std::sqrt(std::log(n) / t));
  trials.tight = combined(eta_z.markov_tight, std::min(eta_tau.union_tight, eta_tau.variance_tight), answer);
  trials.data = combined(std::min(eta_z.markov_tight, eta_z.bernstein), eta_tau.variance_data, answer);
  trials.bound = trials.data + 10 * logit_rounding(subject, query);
  return trials;
}

Index affordable_seeds(const CheckContext& context, const SubgenSetup& setup) {
  const auto kept = static_cast<double>(setup.clusters() * setup.params.t + setup.slots);
  return std::clamp<Index>(static_cast<Index>(most_samples / kept), 20, std::max<Index>(20, context.options.seeds));
}

void add_memory(CheckContext& context, const SubgenSetup& setup, double r, const TheoremSizes& sizes) {
  const Subject& subject = *context.subject;
  const Index n = subject.tokens(), d = subject.d(), dv = subject.dv(), m = setup.clusters();
  const TheoremSizes literal = literal_sizes(setup.delta() * r, n, d, context.options.eps);
  const double tight = memory_ratio(m, sizes.t, sizes.s, n, d, dv);
  context.data(
      {"memory at the theorem's t and s",
       fmt::format("eps={};delta={:.4g};t={:.4g};s={:.4g}", context.options.eps, setup.delta(), sizes.t, sizes.s)},
      {.bound = tight, .literal = memory_ratio(m, literal.t, literal.s, n, d, dv), .tight = tight, .trivial = 1},
      fmt::format("numbers kept over those of the exact cache with {} clusters of {} tokens; failure probability {}; "
                  "with the constants of Omega as 1, t = {:.4g} and s = {:.4g}",
                  m, n, context.options.delta, literal.t, literal.s));
}

/// The bytes that the method declares against O(d (m' t + s)) with its constant: 3 for d = dv, with the metadata.
void add_declared(CheckContext& context, const SubgenSetup& setup, const methods::Footprint& footprint) {
  const Subject& subject = *context.subject;
  double declared = 0;
  for (const methods::FootprintArray& array : footprint) declared += static_cast<double>(array.rows * array.cols);
  const auto m = static_cast<double>(setup.clusters()), t = static_cast<double>(setup.params.t);
  const auto s = static_cast<double>(setup.slots), d = static_cast<double>(std::max(subject.d(), subject.dv()));
  const double exact = static_cast<double>(subject.tokens() * (subject.d() + subject.dv()));
  context.cost({"memory that the method declares, against 4 d (m' t + s)", setup.text()}, declared / exact,
               4 * d * (m * t + s) / exact,
               fmt::format("{:.0f} numbers for {} clusters, of the {:.0f} of the exact cache", declared,
                           setup.clusters(), exact));
}

void at_theorem_sizes(CheckContext& context, const SubgenSetup& setup, const SubgenValues& values,
                      std::span<const SubgenQuery> queries) {
  const double r = largest_query(queries), eps = context.options.eps;
  const TheoremSizes sizes = explicit_sizes(setup, values, queries, eps, context.options.delta);
  add_memory(context, setup, r, sizes);
  const double kept = static_cast<double>(setup.clusters()) * sizes.t + sizes.s;
  if (!(kept <= largest_sketch)) {
    context.theorem({"Eq. 3 at the theorem's t and s"}, {.bound = eps})
        .unmet(fmt::format("t = {:.4g} and s = {:.4g} require {:.3g} samples of {} tokens; not run", sizes.t, sizes.s,
                           kept, context.subject->tokens()));
    return;
  }
  SubgenSetup large = setup;
  large.params.t = static_cast<Index>(sizes.t);
  large.params.s = large.slots = static_cast<Index>(sizes.s);
  large.params.delta = double{setup.partition.radius};
  const SubgenRunner runner(*context.subject, large, context.backend);
  add_declared(context, large, runner.footprint(context.subject->tokens()));
  check_attention(context, "Eq. 3 at the theorem's t and s", {large, values, queries}, eps,
                  affordable_seeds(context, large), [&](std::uint32_t seed) { return runner.answered(seed); });
}

void run_subgen_theorem1(CheckContext& context) {
  const Subject& subject = *context.subject;
  const SubgenValues values = subgen_values(subject);
  const std::vector<SubgenQuery> queries = subgen_queries(subject);
  const std::vector<SubgenSetup> setups = usual_setups(subject, largest_query(queries), context.backend);
  at_theorem_sizes(context, setups.front(), values, queries);
  for (const SubgenSetup& setup : setups) {
    const SubgenRunner runner(subject, setup, context.backend);
    add_declared(context, setup, runner.footprint(context.subject->tokens()));
    check_attention(context, "Eq. 3 for what t and s grant", {setup, values, queries}, NAN,
                    affordable_seeds(context, setup), [&](std::uint32_t seed) { return runner.answered(seed); });
  }
}

}  // namespace

TheoremSizes explicit_sizes(const SubgenSetup& setup, const SubgenValues& values, std::span<const SubgenQuery> queries,
                            double eps, double p) {
  const double eta = eps / 3, log = std::log(4 / p);
  TheoremSizes sizes{.s = std::ceil(2 * values.stable_rank() / (eta * eta * p))};
  for (const SubgenQuery& query : queries) {
    const TauLaw law = tau_law(query.a, setup);
    if (law.shared == 0) continue;
    const double delta_r = setup.delta() * query.r, rho = std::exp(2 * delta_r), sinh = std::sinh(delta_r);
    const double by_union = 3 * rho * std::log(4 * static_cast<double>(law.shared) / p) / (eta * eta);
    const double by_variance =
        2 * log * (sinh * sinh * law.shares2 / (eta * eta) + (rho - 1) * law.largest_share / (3 * eta));
    sizes.t = std::max(sizes.t, std::ceil(std::min(by_union, by_variance)));
  }
  return sizes;
}

TheoremSizes literal_sizes(double delta_r, Index n, Index d, double eps) {
  return {.t = std::ceil(std::exp(2 * delta_r) * std::log(static_cast<double>(n)) / (eps * eps)),
          .s = std::ceil(static_cast<double>(d) / (eps * eps))};
}

double memory_ratio(Index clusters, double t, double s, Index n, Index d, Index dv) {
  const auto m = static_cast<double>(clusters), key = static_cast<double>(d), pair = static_cast<double>(d + dv);
  return (m * (key + t * key + 1) + s * (pair + 1)) / (static_cast<double>(n) * pair);
}

void check_attention(CheckContext& context, std::string part, const AttentionInputs& inputs, double eps, Index seeds,
                     const Sketcher& sketcher) {
  const SubgenSetup& setup = inputs.setup;
  const SubgenValues& values = inputs.values;
  const std::span<const SubgenQuery> queries = inputs.queries;
  const double r = largest_query(queries);
  std::vector<QueryTrials> trials;
  for (const SubgenQuery& query : queries) {
    trials.push_back(std::isnan(eps) ? granted(context, setup, values, query, r)
                                     : QueryTrials{.bound = eps, .trivial = answer_size(query, values)});
  }
  const auto errors =
      errors_by_query(context, queries.size(), seeds, sketcher, [&](const SubgenSketch& sketch, std::size_t q) {
        double error2 = 0;
        for (std::size_t c = 0; c < queries[q].product.size(); ++c) {
          const double away =
              sketch.answers[q * queries[q].product.size() + c] - queries[q].product[c] / queries[q].total;
          error2 += away * away;
        }
        return std::sqrt(error2) / unit_of(queries[q], values);
      });
  for (std::size_t q = 0; q < queries.size(); ++q) trials[q].errors = errors[q];
  add_theorem(context, {part, setup.text()}, trials, context.options.delta,
              "errors over |softmax||V|_op; trivial: answering 0");
  if (!std::isnan(eps)) return;
  add_constant(context, setup.text(), trials, context.options.delta, 1, "max(sqrt(d/s), e^(delta r) sqrt(ln n / t))");
}

Check subgen_theorem1() {
  return {.id = "subgen.theorem1",
          .paper = "SubGen, arXiv 2402.06082, Theorem 1",
          .statement = "z/tau is within eps |softmax|_2 |V|_op of attention, in O(d (m t + s)) memory",
          .run = run_subgen_theorem1};
}

}  // namespace kvbench::bounds
