// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), the first half of Theorem 1's proof (Eq. 5): tau = sum over clusters of (n_i/t) sum over
// the t samples of exp(<q,k>) is within 1 +- eta of Z = sum of all exp(<q,k>).
//
// Three bounds on eta at failure probability p, with rho = e^{2 delta r}, w_i = Z_i / Z
// (docs/theory/subgen.partition.md):
//   (i)   the paper's: Chernoff in each cluster, union over clusters:    eta = sqrt(3 rho ln(2m'/p) / t), for eta <= 1
//   (ii)  Bernstein over all samples, relative variance <= sinh^2(delta r) by Bhatia and Davis
//   (iii) Bernstein with the clusters' own variances and largest terms
// and two identities: E tau = Z, E (tau - Z)^2 = sum of n_i^2 var_i / t. Reading: Eq. (5) of the proof speaks of lines
// 24-28, which the listing numbers 26-31; radius delta gives diameter 2 delta, hence e^{2 delta r}.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>
#include <complex>

#include <kvbench/bounds/trials/law_tests.hpp>
#include <kvbench/bounds/trials/query_trials.hpp>
#include <kvbench/bounds/trials/rates.hpp>

namespace kvbench::bounds {
namespace {

constexpr double affordable_samples = 20000, rate_delta_r = 0.5;

/// E exp(i u (tau - Z)): samples of different clusters are independent, and those of one cluster are drawn alike.
std::complex<double> tau_characteristic(std::span<const double> x, const SubgenSetup& setup, double u) {
  const std::size_t m = setup.sizes.size();
  const auto t = static_cast<double>(setup.params.t);
  const auto label = [&](std::size_t i) { return static_cast<std::size_t>(setup.partition.labels[i]); };
  std::vector<double> sums(m);
  for (std::size_t i = 0; i < x.size(); ++i) sums[label(i)] += x[i];
  std::vector<std::complex<double>> one(m);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double n = setup.sizes[label(i)];
    one[label(i)] += std::polar(1 / n, u * (n * x[i] - sums[label(i)]) / t);
  }
  std::complex<double> product = 1;
  for (const std::complex<double>& f : one) product *= std::pow(f, t);
  return product;
}

struct TauTrials {
  Index seeds = 0;
  std::vector<QueryTrials> by_union, by_variance, by_data;
  std::vector<TauLaw> laws;
  std::vector<CosineTest> shapes;
  std::vector<double> sums, squares;  ///< over seeds, of tau - Z and of its square
};

TauTrials tau_trials(const CheckContext& context, const SubgenSetup& setup, std::span<const SubgenQuery> queries,
                     Index seeds) {
  const Subject& subject = *context.subject;
  TauTrials trials{
      .seeds = seeds, .sums = std::vector<double>(queries.size()), .squares = std::vector<double>(queries.size())};
  const double r = largest_query(queries);
  for (const SubgenQuery& query : queries) {
    trials.laws.push_back(tau_law(query.a, setup));
    const PartitionBounds eta =
        partition_bounds(trials.laws.back(), setup, query.r, r, subject.tokens(), context.options.delta);
    const double rounding = logit_rounding(subject, query);
    trials.by_union.push_back(
        {.literal = eta.union_literal, .tight = eta.union_tight, .bound = eta.union_tight + rounding, .trivial = 1});
    trials.by_variance.push_back({.tight = eta.variance_tight, .bound = eta.variance_tight + rounding, .trivial = 1});
    trials.by_data.push_back(
        {.tight = eta.variance_tight, .data = eta.variance_data, .bound = eta.variance_data + rounding, .trivial = 1});
    const TauLaw& law = trials.laws.back();
    // Where nothing is random there is nothing to test, and the scale is arbitrary.
    trials.shapes.emplace_back(law.variance > 0 ? std::sqrt(law.variance) : 1, rounding * law.total,
                               [&](double u) { return tau_characteristic(query.a, setup, u); });
  }
  return trials;
}

void try_tau(const SubgenSketch& sketch, std::span<const SubgenQuery> queries, TauTrials& trials) {
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const std::vector<double> a = subgen_exponentials(sketch, static_cast<Index>(q), queries[q].shift);
    const double tau = subgen_tau(sketch, a);
    const double error = std::abs(tau / queries[q].total - 1);
    for (auto* tier : {&trials.by_union, &trials.by_variance, &trials.by_data}) (*tier)[q].errors.push_back(error);
    const double difference = tau - queries[q].total;
    trials.sums[q] += difference;
    trials.squares[q] += difference * difference;
    trials.shapes[q].add(difference);
  }
}

/// Whether tau of this query varies by more than rounding.
bool varies(const CheckContext& context, const SubgenQuery& query, const TauLaw& law) {
  return std::sqrt(law.variance) > 100 * logit_rounding(*context.subject, query) * law.total;
}

void add_tau_mean(CheckContext& context, const SubgenSetup& setup, std::span<const SubgenQuery> queries,
                  const TauTrials& trials) {
  const auto seeds = static_cast<double>(trials.seeds);
  double least = 1, ratio = NAN;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const TauLaw& law = trials.laws[q];
    const double off = std::abs(trials.sums[q]) / seeds,
                 rounding = logit_rounding(*context.subject, queries[q]) * law.total;
    const double p = bernstein_tail(off - rounding, law.variance / seeds, law.largest / seeds);
    if (!std::isnan(ratio) && p >= least) continue;
    least = std::min(least, p);
    ratio = 1 + trials.sums[q] / seeds / law.total;
  }
  context.law(
      {"E tau = Z", setup.text()}, least * static_cast<double>(queries.size()),
      fmt::format("mean of tau/Z over {} seeds, worst of {} queries, by Bernstein", trials.seeds, queries.size()),
      ratio);
}

void add_tau_variance(CheckContext& context, const SubgenSetup& setup, std::span<const SubgenQuery> queries,
                      const TauTrials& trials) {
  const Statement statement{"E (tau - Z)^2 = sum n_i^2 var_i / t", setup.text()};
  const auto seeds = static_cast<double>(trials.seeds);
  double least = 2, tested = 0, spread = 0, ratio = NAN;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const TauLaw& law = trials.laws[q];
    if (!varies(context, queries[q], law)) continue;
    tested += 1;
    const double p = trials.shapes[q].p_value();
    if (p >= least) continue;
    least = p;
    ratio = trials.squares[q] / seeds / law.variance;
    spread = std::sqrt((2 + law.cumulant4 / (law.variance * law.variance)) / seeds);
  }
  if (tested == 0) {
    context.law(statement, NAN, "").unmet("no cluster holds two different keys: tau is exact");
    return;
  }
  context.law(
      statement, least * tested,
      fmt::format("measured over exact, expected 1 +- {:.3g}; tested by the characteristic function of tau, all "
                  "of the variance included; worst of {} queries",
                  spread, tested),
      ratio);
}

void run_subgen_partition(CheckContext& context) {
  const std::vector<SubgenQuery> queries = subgen_queries(*context.subject);
  for (const SubgenSetup& usual : usual_setups(*context.subject, largest_query(queries), context.backend)) {
    const SubgenSetup setup = clusters_alone(usual);
    const SubgenRunner runner(*context.subject, setup, context.backend);
    check_partition(context, setup, queries, [&](std::uint32_t seed) { return runner.answered(seed); });
  }
  const auto sketcher_of = [&](const SubgenSetup& setup) -> Sketcher {
    const auto runner = std::make_shared<SubgenRunner>(*context.subject, setup, context.backend);
    return [runner](std::uint32_t seed) { return runner->answered(seed); };
  };
  if (largest_query(queries) == 0) return;
  check_partition_literal(context, queries, sketcher_of);
  check_partition_rate(context, queries, sketcher_of);
}

}  // namespace

TauLaw tau_law(std::span<const double> x, const SubgenSetup& setup) {
  const std::size_t m = setup.sizes.size();
  std::vector<double> sums(m), second(m), fourth(m), lowest(m, INFINITY), highest(m, 0);
  const auto label = [&](std::size_t i) { return static_cast<std::size_t>(setup.partition.labels[i]); };
  TauLaw law;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sums[label(i)] += x[i];
    lowest[label(i)] = std::min(lowest[label(i)], x[i]);
    highest[label(i)] = std::max(highest[label(i)], x[i]);
    law.total += x[i];
  }
  const auto t = static_cast<double>(setup.params.t);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = label(i);
    const double away = x[i] - sums[c] / setup.sizes[c];
    second[c] += away * away / setup.sizes[c];
    fourth[c] += away * away * away * away / setup.sizes[c];
    if (setup.sizes[c] > 1) law.largest = std::max(law.largest, setup.sizes[c] / t * std::abs(away));
  }
  for (std::size_t c = 0; c < m; ++c) {
    if (setup.sizes[c] <= 1) continue;
    const double n2 = setup.sizes[c] * setup.sizes[c], share = sums[c] / law.total;
    law.variance += n2 * second[c] / t;
    law.cumulant4 += n2 * n2 * (fourth[c] - 3 * second[c] * second[c]) / (t * t * t);
    law.shares2 += share * share;
    law.largest_share = std::max(law.largest_share, share);
    law.ratio = std::max(law.ratio, highest[c] / lowest[c]);
    ++law.shared;
  }
  return law;
}

PartitionBounds partition_bounds(const TauLaw& law, const SubgenSetup& setup, double query_norm, double r, Index n,
                                 double p) {
  const auto t = static_cast<double>(setup.params.t), tokens = static_cast<double>(n);
  const double delta = setup.delta(), rho = std::exp(2 * delta * query_norm), sinh = std::sinh(delta * query_norm);
  PartitionBounds eta{.union_literal = std::sqrt(3 * std::exp(2 * delta * r) * std::log(2 * tokens / p) / t)};
  if (law.shared == 0)
    return {.union_literal = eta.union_literal, .union_tight = 0, .variance_tight = 0, .variance_data = 0};
  eta.union_tight = std::sqrt(3 * rho * std::log(2 * static_cast<double>(law.shared) / p) / t);
  eta.variance_tight = bernstein_radius(p, sinh * sinh * law.shares2 / t, (rho - 1) * law.largest_share / t);
  eta.variance_data = bernstein_radius(p, law.variance / (law.total * law.total), law.largest / law.total);
  return eta;
}

double logit_rounding(const Subject& subject, const SubgenQuery& query) {
  double longest = 0;
  for (Index i = 0; i < subject.tokens(); ++i) longest = std::max(longest, squared_norm(subject.key(i)));
  return 1e-6 * (1 + query.r * std::sqrt(longest));
}

void check_partition(CheckContext& context, const SubgenSetup& setup, std::span<const SubgenQuery> queries,
                     const Sketcher& sketcher) {
  // Where every cluster holds one key nothing is random.
  const bool exact = std::ranges::all_of(setup.sizes, [](double size) { return size == 1; });
  TauTrials trials = tau_trials(context, setup, queries, exact ? 1 : context.options.seeds);
  for (Index seed = 0; seed < trials.seeds; ++seed) {
    context.poll();
    try_tau(sketcher(context.seed(seed)), queries, trials);
  }
  add_tau_mean(context, setup, queries, trials);
  add_tau_variance(context, setup, queries, trials);
  const auto tier = [&](const std::string& part, const std::vector<QueryTrials>& of) {
    add_theorem(context, {part, setup.text()}, of, context.options.delta, fmt::format("{} clusters", setup.clusters()));
  };
  tier("(i) Chernoff in each cluster, union", trials.by_union);
  const double constant = std::sqrt(3.0);
  add_constant(context, setup.text(), trials.by_union, context.options.delta, constant,
               "sqrt(e^(2 delta r) ln(2n/p) / t)");
  tier("(ii) Bernstein, variance from delta r", trials.by_variance);
  tier("(iii) Bernstein, variance of the data", trials.by_data);
}

namespace {

/// |tau/Z - 1|: [query][seed].
std::vector<std::vector<double>> tau_errors(const CheckContext& context, std::span<const SubgenQuery> queries,
                                            Index seeds, const Sketcher& sketcher) {
  return errors_by_query(context, queries.size(), seeds, sketcher, [&](const SubgenSketch& sketch, std::size_t q) {
    const auto a = subgen_exponentials(sketch, static_cast<Index>(q), queries[q].shift);
    return std::abs(subgen_tau(sketch, a) / queries[q].total - 1);
  });
}

}  // namespace

void check_partition_literal(CheckContext& context, std::span<const SubgenQuery> queries,
                             const std::function<Sketcher(const SubgenSetup&)>& sketcher_of) {
  const Subject& subject = *context.subject;
  const double r = largest_query(queries), p = context.options.delta, n = static_cast<double>(subject.tokens());
  double least = INFINITY;
  for (const double delta_r : {0.25, 0.5, 1.0, 1.5, 2.0}) {
    const double t = std::ceil(12 * std::exp(2 * delta_r) * std::log(2 * n / p));
    const SubgenSetup setup =
        clusters_alone(radius_setup(subject, delta_r / r, static_cast<Index>(t), context.backend));
    const double samples = static_cast<double>(setup.clusters()) * t;
    least = std::min(least, samples);
    if (samples > affordable_samples) continue;
    const Index seeds = std::clamp<Index>(static_cast<Index>(10 * affordable_samples / samples), 20,
                                          std::max<Index>(20, context.options.seeds));
    const auto errors = tau_errors(context, queries, seeds, sketcher_of(setup));
    std::vector<QueryTrials> trials;
    for (std::size_t q = 0; q < queries.size(); ++q) {
      const double eta =
          partition_bounds(tau_law(queries[q].a, setup), setup, queries[q].r, r, subject.tokens(), p).union_literal;
      trials.push_back(
          {.literal = eta, .bound = eta + logit_rounding(subject, queries[q]), .trivial = 1, .errors = errors[q]});
    }
    add_theorem(context, {"(i) literal constants", setup.text()}, trials, p,
                fmt::format("{} clusters, delta r = {}", setup.clusters(), delta_r));
    return;
  }
  context.theorem(
      {"(i) literal constants"}, {.bound = 1, .literal = 1, .trivial = 1},
      fmt::format("vacuous at every size that is run: eta = 1/2 takes at least m' t* = {:.3g} samples of {} tokens",
                  least, subject.tokens()));
}

void check_partition_rate(CheckContext& context, std::span<const SubgenQuery> queries,
                          const std::function<Sketcher(const SubgenSetup&)>& sketcher_of) {
  std::vector<double> sizes;
  std::vector<std::vector<double>> errors;
  std::string params;
  for (const Index t : {1, 4, 16}) {
    const SubgenSetup setup =
        clusters_alone(radius_setup(*context.subject, rate_delta_r / largest_query(queries), t, context.backend));
    params = setup.text();
    sizes.push_back(static_cast<double>(t));
    errors.push_back(tau_errors(context, queries.subspan(0, 1), 40, sketcher_of(setup)).front());
  }
  add_rate(context, {"slope of ln|tau/Z - 1| over ln t", params}, error_rate(sizes, errors), -0.5,
           "t = 1, 4, 16 at the first query, groups of seeds");
}

Check subgen_partition() {
  return {.id = "subgen.partition",
          .paper = "SubGen, arXiv 2402.06082, proof of Theorem 1, Eq. (5)",
          .statement = "the cluster samples' tau is within 1 +- eta of the partition function",
          .run = run_subgen_partition};
}

}  // namespace kvbench::bounds
