// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), the second half of Theorem 1's proof (Eq. 6): z = (1/s) sum over slots of mu/|v|^2
// exp(<q,k>) v is within eta |a|_2 |V|_op of V^T a, a = exp(Kq).
//
// The paper quotes approximate matrix products with s of order d / eta^2. By Lemma 1 (docs/theory/subgen.amm.md):
//   E z = V^T a  and  E |z - V^T a|^2 = (|a|^2 |V|_F^2 - |V^T a|^2) / s exactly;
//   Markov:     eta = sqrt(srank (1 - |V^T a|^2 / (|a|^2 |V|_F^2)) / (s p)), srank = |V|_F^2 / |V|_op^2 <= d
//   Bernstein:  with the same variance and the largest term, (mu max a_i/|v_i| + |V^T a|) / s: short values drive the
//               tail.
#include <kvbench/bounds/subgen/checks.hpp>

#include <algorithm>
#include <cmath>
#include <complex>

#include <kvbench/bounds/trials/law_tests.hpp>
#include <kvbench/bounds/trials/query_trials.hpp>
#include <kvbench/bounds/trials/rates.hpp>

namespace kvbench::bounds {
namespace {

constexpr double most_literal_slots = 5000;
constexpr std::size_t directions = 3;  // in which the law of z is tested

/// V^T a, then directions that do not depend on the data.
std::vector<std::vector<double>> tested_directions(const SubgenQuery& query) {
  std::vector<std::vector<double>> all = {query.product};
  for (std::uint32_t i = 1; i < directions; ++i) {
    std::vector<double>& u = all.emplace_back();
    for (std::uint32_t c = 0; c < query.product.size(); ++c)
      u.push_back(standard_normal(philox4x32({{i, c, 0, 0}}, {0xa33, 0})));
  }
  return all;
}

/// <z - V^T a, u> is the mean of s independent numbers Y, which are y_i with probability |v_i|^2 / mu.
struct Projected {
  std::vector<double> share, y;
  double mean = 0, variance = 0;  ///< of <z, u>, and of the sum over slots

  Projected(const Subject& subject, const SubgenValues& values, const SubgenQuery& query, const std::vector<double>& u,
            Index s) {
    mean = dot(query.product, u);
    for (std::size_t i = 0; i < query.a.size(); ++i) {
      if (values.norms2[i] == 0) continue;
      share.push_back(values.norms2[i] / values.mu);
      y.push_back(query.a[i] / share.back() * dot(u, subject.value(static_cast<Index>(i))) - mean);
      variance += share.back() * y.back() * y.back() / static_cast<double>(s);
    }
  }
  double largest() const {
    double most = 0;
    for (const double x : y) most = std::max(most, std::abs(x));
    return most;
  }
  std::complex<double> characteristic(double u, Index s) const {
    std::complex<double> one = 0;
    for (std::size_t i = 0; i < y.size(); ++i) one += std::polar(share[i], u * y[i] / static_cast<double>(s));
    return std::pow(one, static_cast<double>(s));
  }
};

struct ProductTrials {
  std::vector<QueryTrials> markov, bernstein;
  std::vector<ProductLaw> laws;
  std::vector<std::vector<CosineTest>> shapes;  ///< [query][direction]
  std::vector<double> along, squares;           ///< over seeds: <z - V^T a, u>, and |z - V^T a|^2
};

/// How far <z, u> may be off because logits are fp32.
double product_rounding(const Subject& subject, const SubgenQuery& query, double length, double largest) {
  return logit_rounding(subject, query) * (length + largest);
}

ProductTrials product_trials(const CheckContext& context, const SubgenValues& values,
                             std::span<const SubgenQuery> queries, Index s) {
  const Subject& subject = *context.subject;
  ProductTrials trials{.along = std::vector<double>(queries.size()), .squares = std::vector<double>(queries.size())};
  for (const SubgenQuery& query : queries) {
    const ProductLaw law = product_law(subject, values, query.a, s);
    const ProductBounds eta = product_bounds(law, values, query, s, subject.d(), context.options.delta);
    const double unit = std::sqrt(query.norm2 * values.op2), length = std::sqrt(query.product2),
                 trivial = length / unit;
    const double rounding = product_rounding(subject, query, length, law.largest * static_cast<double>(s)) / unit;
    trials.markov.push_back({.literal = eta.markov_literal,
                             .tight = eta.markov_tight,
                             .bound = eta.markov_tight + rounding,
                             .trivial = trivial});
    trials.bernstein.push_back(
        {.tight = eta.markov_tight, .data = eta.bernstein, .bound = eta.bernstein + rounding, .trivial = trivial});
    trials.laws.push_back(law);
    std::vector<CosineTest>& shapes = trials.shapes.emplace_back();
    for (const std::vector<double>& u : tested_directions(query)) {
      const Projected z(subject, values, query, u, s);
      shapes.emplace_back(z.variance > 0 ? std::sqrt(z.variance) : 1,
                          product_rounding(subject, query, std::abs(z.mean), z.largest()),
                          [&](double scale) { return z.characteristic(scale, s); });
    }
  }
  return trials;
}

void try_product(const Subject& subject, const SubgenSketch& sketch, const SubgenValues& values,
                 std::span<const SubgenQuery> queries, ProductTrials& trials) {
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const SubgenQuery& query = queries[q];
    const std::vector<double> a = subgen_exponentials(sketch, static_cast<Index>(q), query.shift);
    std::vector<double> away = subgen_z(subject, sketch, a);
    for (std::size_t c = 0; c < away.size(); ++c) away[c] -= query.product[c];
    const double error = std::sqrt(squared_norm(away) / (query.norm2 * values.op2));
    trials.markov[q].errors.push_back(error);
    trials.bernstein[q].errors.push_back(error);
    if (query.product2 > 0) trials.along[q] += dot(away, query.product) / std::sqrt(query.product2);
    trials.squares[q] += squared_norm(away);
    const auto tested = tested_directions(query);
    for (std::size_t i = 0; i < directions; ++i) trials.shapes[q][i].add(dot(away, tested[i]));
  }
}

void add_product_mean(CheckContext& context, std::span<const SubgenQuery> queries, const std::string& params,
                      const ProductTrials& trials) {
  const auto seeds = static_cast<double>(context.options.seeds);
  double least = 2, ratio = NAN;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const ProductLaw& law = trials.laws[q];
    const double length = std::sqrt(queries[q].product2);
    const double rounding = logit_rounding(*context.subject, queries[q]) * std::max(length, law.largest);
    const double p =
        bernstein_tail(std::abs(trials.along[q]) / seeds - rounding, law.along / seeds, law.largest / seeds);
    if (p >= least) continue;
    least = p;
    ratio = length > 0 ? 1 + trials.along[q] / seeds / length : 1;
  }
  context.law({"E z = V^T a, along V^T a", params}, least * static_cast<double>(queries.size()),
              fmt::format("mean of <z, u> / |V^T a| over {} seeds, worst of {} queries, by Bernstein",
                          context.options.seeds, queries.size()),
              ratio);
}

void add_product_variance(CheckContext& context, std::span<const SubgenQuery> queries, const std::string& params,
                          Index s, const ProductTrials& trials) {
  const auto seeds = static_cast<double>(context.options.seeds);
  const auto slots = static_cast<double>(s), tests = static_cast<double>(queries.size() * directions);
  double least = 2, spread = 0, ratio = NAN;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    for (const CosineTest& shape : trials.shapes[q]) {
      const double p = shape.p_value();
      if (p >= least) continue;
      least = p;
      const double variance = trials.laws[q].variance;
      ratio = variance > 0 ? trials.squares[q] / seeds / variance : 1;
      spread = std::sqrt(((trials.laws[q].kurtosis - 1) / slots + 2 * (slots - 1) / slots) / seeds);
    }
  }
  context.law(
      {"E |z - V^T a|^2 = (|a|^2 |V|_F^2 - |V^T a|^2) / s", params}, least * tests,
      fmt::format("measured over exact, expected 1 +- at most {:.3g}; tested by the characteristic functions of "
                  "<z, u>, u = V^T a and {} other directions, all of the variance included; worst of {} queries",
                  spread, directions - 1, queries.size()),
      ratio);
}

double tail_driver(const SubgenValues& values, std::span<const SubgenQuery> queries) {
  double largest = 0;
  for (const SubgenQuery& query : queries) {
    for (std::size_t i = 0; i < query.a.size(); ++i) {
      if (values.norms2[i] > 0)
        largest = std::max(largest, query.a[i] * std::sqrt(values.mu / values.norms2[i] / query.norm2));
    }
  }
  return largest;
}

void run_subgen_amm(CheckContext& context) {
  const Subject& subject = *context.subject;
  const SubgenValues values = subgen_values(subject);
  const std::vector<SubgenQuery> queries = subgen_queries(subject);
  // One cluster: only z is looked at.
  const Index s = std::max<Index>(1, subject.tokens() / 16);
  const SubgenSetup setup{.params = {.t = 1, .s = s, .delta = 1e15}, .budget = 1, .slots = s};
  const SubgenRunner runner(subject, setup, context.backend);
  check_product(context, values, queries, s, [&](std::uint32_t seed) { return runner.answered(seed); });
  check_product_sizes(context, values, queries, [&](Index slots) -> Sketcher {
    const auto setup_of = std::make_shared<SubgenSetup>(setup);
    setup_of->params.s = setup_of->slots = slots;
    const auto other = std::make_shared<SubgenRunner>(subject, *setup_of, context.backend);
    return [setup_of, other](std::uint32_t seed) { return other->answered(seed); };
  });
}

}  // namespace

ProductLaw product_law(const Subject& subject, const SubgenValues& values, std::span<const double> x, Index s) {
  ProductLaw law{.mean = std::vector<double>(static_cast<std::size_t>(subject.dv()))};
  for (Index i = 0; i < subject.tokens(); ++i) {
    const auto value = subject.value(i);
    for (std::size_t c = 0; c < value.size(); ++c) law.mean[c] += x[static_cast<std::size_t>(i)] * double{value[c]};
  }
  law.mean2 = squared_norm(law.mean);
  double fourth = 0, second = 0, along = 0, longest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double norm2 = values.norms2[i];
    if (norm2 == 0) continue;
    // X = mu x v / |v|^2 with probability |v|^2 / mu, Y = X - V^T x.
    const double share = norm2 / values.mu, inner = x[i] / share * dot(law.mean, subject.value(static_cast<Index>(i)));
    const double y2 = std::max(0.0, x[i] * x[i] * norm2 / (share * share) - 2 * inner + law.mean2);
    second += share * y2;
    fourth += share * y2 * y2;
    if (law.mean2 > 0) along += share * (inner - law.mean2) * (inner - law.mean2) / law.mean2;
    longest = std::max(longest, std::sqrt(y2));
  }
  const auto slots = static_cast<double>(s);
  law.variance = second / slots;
  law.along = along / slots;
  law.largest = longest / slots;
  law.kurtosis = fourth / (second * second);
  return law;
}

ProductBounds product_bounds(const ProductLaw& law, const SubgenValues& values, const SubgenQuery& query, Index s,
                             Index d, double p) {
  const double unit = std::sqrt(query.norm2 * values.op2), draws = static_cast<double>(s) * p;
  return {.markov_literal = std::sqrt(static_cast<double>(d) / draws),
          .markov_tight = std::sqrt(law.variance / p) / unit,
          .bernstein = bernstein_radius(p, law.variance, law.largest) / unit};
}

void check_product(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries, Index s,
                   const Sketcher& sketcher) {
  ProductTrials trials = product_trials(context, values, queries, s);
  for (Index seed = 0; seed < context.options.seeds; ++seed) {
    context.poll();
    try_product(*context.subject, sketcher(context.seed(seed)), values, queries, trials);
  }
  const std::string params = fmt::format("s={}", s);
  add_product_mean(context, queries, params, trials);
  add_product_variance(context, queries, params, s, trials);
  const double p = context.options.delta;
  const std::string text = fmt::format("stable rank {:.3g}, max a_i/|v_i| is {:.3g} of |a|/|V|_F", values.stable_rank(),
                                       tail_driver(values, queries));
  add_theorem(context, {"Markov", params}, trials.markov, p, text);
  add_constant(context, params, trials.markov, p, 1, "sqrt(d / (s p)) |a| |V|_op");
  add_theorem(context, {"Bernstein", params}, trials.bernstein, p, text);
}

namespace {

/// |z - V^T a| / (|a| |V|_op): [query][seed].
std::vector<std::vector<double>> product_errors(const CheckContext& context, const SubgenValues& values,
                                                std::span<const SubgenQuery> queries, Index seeds,
                                                const Sketcher& sketcher) {
  return errors_by_query(context, queries.size(), seeds, sketcher, [&](const SubgenSketch& sketch, std::size_t q) {
    const auto a = subgen_exponentials(sketch, static_cast<Index>(q), queries[q].shift);
    const double away2 = squared_distance(subgen_z(*context.subject, sketch, a), queries[q].product);
    return std::sqrt(away2 / (queries[q].norm2 * values.op2));
  });
}

void add_literal_product(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries,
                         const std::function<Sketcher(Index s)>& sketcher_of) {
  const double p = context.options.delta, d = static_cast<double>(context.subject->d());
  std::vector<double> trivial;
  for (const SubgenQuery& query : queries) trivial.push_back(std::sqrt(query.product2 / (query.norm2 * values.op2)));
  const double best = std::ranges::max(trivial), needed = 4 * d / (p * best * best);
  if (!(needed <= most_literal_slots)) {
    context.theorem({"Markov, literal constants"}, {.bound = 1, .literal = 1, .trivial = 1},
                    fmt::format("over the trivial bound; vacuous at every size that is run, and half of it at s* = "
                                "{:.3g} slots",
                                needed));
    return;
  }
  const auto s = static_cast<Index>(std::ceil(needed));
  const Index seeds = std::clamp<Index>(static_cast<Index>(20 * most_literal_slots / needed), 20,
                                        std::max<Index>(20, context.options.seeds));
  const auto errors = product_errors(context, values, queries, seeds, sketcher_of(s));
  std::vector<QueryTrials> trials;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const double bound = std::sqrt(d / (static_cast<double>(s) * p));
    trials.push_back({.literal = bound, .bound = bound, .trivial = trivial[q], .errors = errors[q]});
  }
  add_theorem(context, {"Markov, literal constants", fmt::format("s={}", s)}, trials, p,
              "errors over |a| |V|_op; trivial: answering 0");
}

}  // namespace

void check_product_sizes(CheckContext& context, const SubgenValues& values, std::span<const SubgenQuery> queries,
                         const std::function<Sketcher(Index s)>& sketcher_of) {
  add_literal_product(context, values, queries, sketcher_of);
  const Index n = context.subject->tokens();
  std::vector<double> sizes;
  std::vector<std::vector<double>> errors;
  for (const Index s : {n / 64, n / 16, n / 4}) {
    if (s < 1) return;
    sizes.push_back(static_cast<double>(s));
    errors.push_back(product_errors(context, values, queries.subspan(0, 1), 40, sketcher_of(s)).front());
  }
  add_rate(context, {"slope of ln|z - V^T a| over ln s", fmt::format("s={},{},{}", n / 64, n / 16, n / 4)},
           error_rate(sizes, errors), -0.5, "at the first query, groups of seeds");
}

Check subgen_amm() {
  return {.id = "subgen.amm",
          .paper = "SubGen, arXiv 2402.06082, proof of Theorem 1, Eq. (6)",
          .statement = "the sampled product z is V^T exp(Kq) on average, with error (|a|^2 |V|_F^2 - |V^T a|^2) / s",
          .run = run_subgen_amm};
}

}  // namespace kvbench::bounds
