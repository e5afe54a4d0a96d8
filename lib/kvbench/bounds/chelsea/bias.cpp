// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), Eq. 2: a merged entry of degree g with the mean key kbar contributes g e^{a <q, kbar>}
// instead of sum_i e^{a <q, k_i>}. By Jensen's inequality this is not larger, for any query: merging underestimates the
// mass of a cluster. The entries of `chelsea` must satisfy, up to rounding:
//   (1) degrees sum to n, and sum of g kbar = sum of k (equality in Eq. 2 at q = 0, and to first order)
//   (2) for every entry and query g e^{a <q, kbar>} <= sum over its tokens, with equality for an entry of one token
// The check need not know the tokens of an entry: values are merged as keys are, so with the values v_i = e^{a <q,
// k_i>} the value of a merged entry is the mean over its tokens. Every query is used with its negative, so that errors
// of first order show. docs/theory/chelsea.bias.md.
#include <kvbench/bounds/chelsea/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::bounds {
namespace {

// Keys and values of entries are fp32 means, formed in a few rounds. A correct entry may have an error of 2^-22 of the
// largest number in it, times the length |q| |k| of the logit. Values below `smallest_value` of the largest of their
// column are not tested.
constexpr double fp32_rounding = 1e-5, smallest_value = 1e-30;

/// Adds a comparison of two sums that must be equal.
void compare_sums(BiasCount& count, double exact, double found, double unit) {
  const double error = std::abs(found - exact) / unit;
  ++count.sums;
  count.broken_sums += !(error <= 10 * fp32_rounding);
  count.worst_sum = std::max(count.worst_sum, error);
}

void check_sums(const MassProblem& p, const MassEntries& entries, BiasCount& count) {
  double degrees = 0;
  for (const double g : entries.degrees) degrees += g;
  compare_sums(count, static_cast<double>(p.n), degrees, 1);  // whole numbers
  const auto d = static_cast<std::size_t>(p.d);
  for (std::size_t c = 0; c < d; ++c) {
    double exact = 0, found = 0, size = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.n); ++i) {
      exact += double{p.keys[i * d + c]};
      size += std::abs(double{p.keys[i * d + c]});
    }
    for (std::size_t e = 0; e < entries.degrees.size(); ++e) found += entries.degrees[e] * entries.keys[e][c];
    compare_sums(count, exact, found, std::max(size, 1e-30));
  }
}

/// ln(Z_hat / Z) of one column.
double check_column(const MassProblem& p, const MassEntries& entries, std::size_t c, BiasCount& count) {
  const auto columns = p.queries.size();
  double exact = 0, kept = 0, approximate = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.n); ++i) exact += double{p.values[i * columns + c]};
  for (std::size_t e = 0; e < entries.degrees.size(); ++e) {
    const std::span<const double> query(p.queries[c]), key(entries.keys[e]);
    const double merged = std::exp(p.scale * dot(query, key) - p.shift[c]), mean = entries.values[e][c];
    const double lengths = std::sqrt(squared_norm(query)) * std::sqrt(squared_norm(key));
    const double slack = fp32_rounding * (1 + p.scale * lengths) * std::max(merged, mean) + smallest_value;
    const bool single = entries.degrees[e] == 1;
    ++count.entries;
    count.broken_entries += !(merged <= mean + slack) || (single && !(merged >= mean - slack));
    kept += entries.degrees[e] * mean;
    approximate += entries.degrees[e] * merged;
  }
  compare_sums(count, exact, kept, exact);
  return std::log(approximate / exact);
}

}  // namespace

MassProblem mass_problem(const Subject& subject) {
  MassProblem p{.n = subject.tokens(), .d = subject.d(), .scale = double{subject.head.scale}, .keys = subject.keys};
  for (const double sign : {1.0, -1.0}) {
    for (Index q = 0; q < subject.num_queries(); ++q) {
      std::vector<double> query;
      for (const float x : subject.query(q)) query.push_back(sign * double{x});
      p.queries.push_back(std::move(query));
    }
  }
  const std::size_t columns = p.queries.size();
  p.values.resize(static_cast<std::size_t>(p.n) * columns);
  for (std::size_t c = 0; c < columns; ++c) {
    std::vector<double> logits;
    for (Index i = 0; i < p.n; ++i) logits.push_back(p.scale * dot(p.queries[c], subject.key(i)));
    p.shift.push_back(*std::ranges::max_element(logits));
    for (std::size_t i = 0; i < logits.size(); ++i)
      p.values[i * columns + c] = static_cast<float>(std::exp(logits[i] - p.shift[c]));
  }
  return p;
}

BiasCount count_bias(const MassProblem& problem, const MassEntries& entries) {
  BiasCount count;
  count.merged = std::ranges::count_if(entries.degrees, [](double g) { return g > 1; });
  check_sums(problem, entries, count);
  const std::size_t asked = problem.queries.size() / 2;  // the others are their negatives
  for (std::size_t c = 0; c < problem.queries.size(); ++c) {
    const double log_ratio = check_column(problem, entries, c, count);
    if (c >= asked) continue;
    count.log_ratio += log_ratio / static_cast<double>(asked);
    count.lowest = std::min(count.lowest, log_ratio);
  }
  return count;
}

MassEntries mass_entries(const MassProblem& problem, const Subject& subject, Index budget,
                         const MethodUnderTest& method, Backend& backend) {
  const auto d = static_cast<std::size_t>(problem.d), columns = problem.queries.size();
  methods::HeadPrompt head = subject.head;
  head.values = backend.adopt(std::vector(problem.values), problem.n, static_cast<Index>(columns));
  Session session(method(head, backend)(budget, 0), head.tokens(), backend);
  MassEntries entries;
  for (const methods::EntryTable& table : session.entries({{}}).front()) {
    const std::vector<std::int32_t> ids = backend.read(table.ids);
    const std::vector<float> degrees = backend.read(table.weight_den), own_keys = backend.read(table.own_keys),
                             own_values = backend.read(table.own_values);
    for (std::size_t e = 0; e < ids.size(); ++e) {
      if (ids[e] < 0) continue;
      const auto token = static_cast<std::size_t>(ids[e]);
      const float* const key = own_keys.empty() ? problem.keys.data() + token * d : own_keys.data() + e * d;
      const float* const value =
          own_values.empty() ? problem.values.data() + token * columns : own_values.data() + e * columns;
      entries.degrees.push_back(degrees.empty() ? 1.0 : double{degrees[e]});
      entries.keys.emplace_back(key, key + d);
      entries.values.emplace_back(value, value + columns);
    }
  }
  return entries;
}

void check_chelsea_bias(CheckContext& context, const MethodUnderTest& method) {
  const Subject& subject = *context.subject;
  const MassProblem problem = mass_problem(subject);
  for (const Index share : {2, 4, 8}) {
    context.poll();
    const Index budget = std::max<Index>(1, problem.n / share);
    const BiasCount count = count_bias(problem, mass_entries(problem, subject, budget, method, context.backend));
    context.exact({fmt::format("Jensen and conservation, B=n/{}", share),
                   fmt::format("queries={};merged={}", problem.queries.size(), count.merged)},
                  count.broken_sums + count.broken_entries, count.sums + count.entries,
                  fmt::format("{} of {} sums not conserved (largest relative error {:.1g}), {} of {} entries with more "
                              "than the mass of their tokens",
                              count.broken_sums, count.sums, count.worst_sum, count.broken_entries, count.entries));
    context.data({fmt::format("bias of ln Z, B=n/{}", share)}, {.measured = count.log_ratio},
                 fmt::format("ln(Z_hat / Z) over the queries: mean {:.3g}, smallest {:.3g}; {} merged entries",
                             count.log_ratio, count.lowest, count.merged));
  }
}

Check chelsea_bias() {
  return {.id = "chelsea.bias",
          .paper = "Chelsea, arXiv 2506.11418, Eq. 2; the inequality is Jensen's",
          .statement =
              "merged entries never have more attention mass than their tokens, and conserve the number and the sum of "
              "the keys",
          .run = [](CheckContext& context) { check_chelsea_bias(context, registered_method("chelsea")); }};
}

}  // namespace kvbench::bounds
