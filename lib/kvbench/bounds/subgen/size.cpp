// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), the size of D in Theorem 1 and Corollary 1.
//
// m' clusters are at most m(delta), the least m for which the keys are (m, delta)-clusterable (Definition 1), by the
// pigeonhole principle. m(delta) is NP-hard; from above, clusters of radius delta/2 have diameter delta, so
//   m'(delta) <= m(delta) <= m'(delta/2).
// Corollary 1 requires that delta r = o(log n) and that m grows sublinearly. docs/theory/subgen.size.md,
// subgen.corollary1.md.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>

namespace kvbench::bounds {
namespace {

constexpr Index quarters = 4;
constexpr double student_3 = 3.182;  // 97.5 % quantile of Student's t with 3 degrees of freedom
constexpr Index prefixes = 5;        // n, n/2, n/4, ...
constexpr double most_samples_per_cluster = 24;

Index clusters_at(const Subject& subject, Index tokens, double delta, Backend& backend) {
  return methods::leader_partition(backend, subject.head.keys.slice(0, tokens), static_cast<float>(delta), tokens)
      .value()
      .clusters();
}

void run_subgen_size(CheckContext& context) {
  const Subject& subject = *context.subject;
  const double r = largest_query(subgen_queries(subject));
  for (const SubgenSetup& setup : usual_setups(subject, r, context.backend)) {
    context.poll();
    check_sizes_nest(context, setup.delta(), setup.clusters(),
                     clusters_at(subject, subject.tokens(), setup.delta() / 2, context.backend));
    if (subject.tokens() < 64) continue;
    const Growth growth = cluster_growth(subject, setup.partition.radius, context.backend);
    context.data({"growth exponent of m'", setup.text()}, {.measured = growth.exponent},
                 fmt::format("slope of log m'(n) over log n in the last 15/16 of the stream; 95 % interval {:.3f} .. "
                             "{:.3f} over its quarters: {}",
                             growth.interval.lo, growth.interval.hi,
                             growth.interval.hi < 1 ? "sublinear" : "not shown to be sublinear"));
  }
}

void run_subgen_corollary1(CheckContext& context) {
  const Subject& subject = *context.subject;
  const double r = largest_query(subgen_queries(subject)), eps = context.options.eps;
  for (const SubgenSetup& setup : usual_setups(subject, r, context.backend)) {
    if (subject.tokens() >= 64) {
      check_memory_growth(context, setup, cluster_growth(subject, setup.partition.radius, context.backend),
                          [&](const SubgenSetup& at, Index tokens) {
                            return SubgenRunner(subject, at, context.backend).footprint(tokens);
                          });
    }
    const std::vector<double> counts = cluster_counts(setup.partition.labels);
    for (Index part = 0; part < prefixes; ++part) {
      const Index n = subject.tokens() >> (prefixes - 1 - part);
      if (n < 2) continue;
      const double log = std::log(static_cast<double>(n)), delta_r = setup.delta() * r;
      const double m = counts[static_cast<std::size_t>(n - 1)];
      const TheoremSizes sizes = literal_sizes(delta_r, n, subject.d(), eps);
      const double memory = memory_ratio(static_cast<Index>(m), sizes.t, sizes.s, n, subject.d(), subject.dv());
      context.data(
          {fmt::format("delta r / ln n after {} tokens", n), setup.text()},
          {.measured = delta_r / log, .literal = memory},
          fmt::format(
              "m' = {:.0f} of {} keys; t of the theorem with constants as 1: {:.4g}; memory {:.4g} of the exact cache",
              m, n, sizes.t, memory));
    }
  }
}

void run_subgen_quantities(CheckContext& context) {
  const Subject& subject = *context.subject;
  const std::vector<SubgenQuery> queries = subgen_queries(subject);
  const SubgenValues values = subgen_values(subject);
  const double r = largest_query(queries);
  context.data({"r"}, {.measured = r}, fmt::format("largest |scale q| of {} queries", queries.size()));
  context.data({"stable rank of V"}, {.measured = values.stable_rank(), .bound = static_cast<double>(subject.dv())},
               "|V|_F^2 / |V|_op^2, at most d");
  for (const SubgenSetup& setup : usual_setups(subject, r, context.backend)) {
    context.poll();
    const double delta_r = setup.delta() * r, bound = std::exp(2 * delta_r);
    context.data({"delta r", setup.text()}, {.measured = delta_r}, "with the logit scale folded into q");
    context.data({"m'(delta)", setup.text()}, {.measured = static_cast<double>(setup.clusters())},
                 fmt::format("clusters of {} keys; m'(delta/2) = {}", subject.tokens(),
                             clusters_at(subject, subject.tokens(), setup.delta() / 2, context.backend)));
    double ratio = 1, largest_share = 0;
    for (const SubgenQuery& query : queries) {
      const TauLaw law = tau_law(query.a, setup);
      ratio = std::max(ratio, law.ratio);
      largest_share = std::max(largest_share, law.largest_share);
    }
    context.data({"e^(2 delta r) against the largest max/min of exp within a cluster", setup.text()},
                 {.measured = ratio, .bound = bound, .literal = bound},
                 fmt::format("a cluster of more than one key holds at most {:.3g} of Z", largest_share));
  }
}

}  // namespace

std::vector<double> cluster_counts(std::span<const std::int32_t> labels) {
  std::vector<double> counts;
  double clusters = 0;
  for (const std::int32_t label : labels)
    counts.push_back(clusters = std::max(clusters, static_cast<double>(label) + 1));
  return counts;
}

double growth_exponent(std::span<const double> counts, int points) {
  const auto n = static_cast<double>(counts.size());
  std::vector<double> x, y;
  for (int i = 0; i < points; ++i) {
    const double at = n * std::pow(16.0, static_cast<double>(i) / (points - 1) - 1);
    const auto index = static_cast<std::size_t>(std::max(1.0, std::round(at)));
    x.push_back(std::log(static_cast<double>(index)));
    y.push_back(std::log(counts[index - 1]));
  }
  return slope(x, y);
}

Growth cluster_growth(const Subject& subject, float delta, Backend& backend) {
  const auto exponent = [&](Index first, Index count) {
    const auto keys = subject.head.keys.slice(first, count);
    return growth_exponent(cluster_counts(methods::leader_partition(backend, keys, delta, count).value().labels));
  };
  const Index n = subject.tokens(), part = n / quarters;
  std::vector<double> exponents;
  for (Index q = 0; q < quarters; ++q) exponents.push_back(exponent(q * part, part));
  const double middle = mean(exponents), half = student_3 * standard_error(exponents);
  return {.exponent = exponent(0, n), .interval = {middle - half, middle + half}};
}

void check_sizes_nest(CheckContext& context, double delta, Index at_delta, Index at_half) {
  context.exact({"m'(delta) <= m(delta) <= m'(delta/2)", fmt::format("delta={:.4g}", delta)}, at_delta > at_half, 1,
                fmt::format("the least number of clusters of diameter delta lies between {} and {}", at_delta, at_half),
                {.measured = static_cast<double>(at_delta), .bound = static_cast<double>(at_half)});
}

void check_memory_growth(CheckContext& context, const SubgenSetup& setup, const Growth& growth,
                         const std::function<methods::Footprint(const SubgenSetup&, Index)>& footprint) {
  const std::vector<double> counts = cluster_counts(setup.partition.labels);
  const auto n = static_cast<Index>(counts.size());
  std::vector<double> x, clusters, stated, declared;
  for (Index part = prefixes; part-- > 0;) {
    const Index tokens = n >> part;
    const double log = std::log(static_cast<double>(tokens));
    SubgenSetup at = clusters_alone(setup);
    at.params.t = static_cast<Index>(std::ceil(most_samples_per_cluster * log / std::log(static_cast<double>(n))));
    double numbers = 0;
    for (const methods::FootprintArray& array : footprint(at, tokens))
      numbers += static_cast<double>(array.rows * array.cols);
    x.push_back(log);
    clusters.push_back(std::log(counts[static_cast<std::size_t>(tokens - 1)]));
    stated.push_back(clusters.back() + std::log(static_cast<double>(at.params.t)));
    declared.push_back(std::log(numbers));
  }
  const double measured = slope(x, declared);
  context.cost(
      {"memory along the stream grows like m' t, t ~ ln n", setup.text()}, measured, slope(x, stated) + 0.1,
      fmt::format("fitted exponents over n = {} to {}: of the numbers that the method holds, {:.3f}; of m', "
                  "{:.3f}, {}; bound: that of m' t, with 0.1 for terms of lower order",
                  n >> (prefixes - 1), n, measured, slope(x, clusters),
                  growth.interval.hi < 1 ? "sublinear"
                                         : "not shown to be sublinear, so that Corollary 1 promises nothing below n"));
}

Check subgen_size() {
  return {.id = "subgen.size",
          .paper = "SubGen, arXiv 2402.06082, Definition 1 and Theorem 1 (memory)",
          .statement = "the algorithm opens at most m(delta) clusters; how fast they grow along the stream",
          .run = run_subgen_size};
}

Check subgen_corollary1() {
  return {.id = "subgen.corollary1",
          .paper = "SubGen, arXiv 2402.06082, Corollary 1",
          .statement = "delta r / ln n and m' along the stream: the trend that a finite trace can show",
          .run = run_subgen_corollary1};
}

Check subgen_quantities() {
  return {.id = "subgen.quantities",
          .paper = "SubGen, arXiv 2402.06082, Theorem 1",
          .statement =
              "the numbers that its bounds are made of: r, delta r, m', the stable rank of V, spread within clusters",
          .run = run_subgen_quantities};
}

}  // namespace kvbench::bounds
