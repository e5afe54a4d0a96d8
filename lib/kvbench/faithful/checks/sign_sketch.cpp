// SPDX-License-Identifier: Apache-2.0
// Inner products estimated from the signs of a random projection are right on average: QJL (arXiv 2406.03482, lemma
// 3.2) and TurboQuant with the sketch of the residual (arXiv 2504.19874, theorem 2). docs/theory/qjl.unbiased.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/methods/quantisation/sign_sketch.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {
namespace {

constexpr Index sketched_keys = 64;  // whose partition function is looked at
constexpr Index tested_keys = 8;     // of these, whose products are
constexpr Index partition_seeds = 40;
constexpr double norm_rounding = 0x1p-11;  // of a normal number in f16

/// A key and what it is multiplied by: a query of the subject, or the key itself, where a wrong factor shows most.
struct Pair {
  Index key = 0;
  bool with_itself = false;
  std::vector<float> query;
  double exact = 0;      ///< <q, k>
  double sum = 0;        ///< of the estimates over seeds
  double variance = 0;   ///< of the bound of a sum over seeds
  double allowance = 0;  ///< sum over seeds of what the rounding of norms and rows may change
};

std::vector<Pair> pairs_of(const bounds::Subject& subject, const std::vector<float>& keys) {
  const Index d = subject.d(), count = std::min(tested_keys, static_cast<Index>(keys.size()) / d);
  std::vector<Pair> pairs;
  for (Index i = 0; i < count; ++i) {
    const auto key = row_of(keys, d, i);
    pairs.push_back({.key = i, .with_itself = true, .query = {key.begin(), key.end()}});
    for (Index j = 0; j < subject.num_queries(); ++j)
      pairs.push_back({.key = i, .query = {subject.query(j).begin(), subject.query(j).end()}});
  }
  for (Pair& pair : pairs) pair.exact = bounds::dot(pair.query, row_of(keys, d, pair.key));
  return pairs;
}

/// One seed: given the rounding, the estimate is a function of normal numbers with a known Lipschitz constant.
void add_estimate(Pair& pair, std::span<const float> key, std::span<const float> rounded,
                  std::span<const float> estimated) {
  std::vector<double> residual;
  for (std::size_t c = 0; c < key.size(); ++c) residual.push_back(double{key[c]} - double{rounded[c]});
  const double query2 = bounds::squared_norm(pair.query), query = std::sqrt(query2);
  pair.sum += bounds::dot(pair.query, estimated);
  pair.variance += std::numbers::pi / 2 / static_cast<double>(key.size()) * query2 * std::pow(1 + norm_rounding, 2) *
                   bounds::squared_norm(residual);
  pair.allowance += norm_rounding * std::abs(bounds::dot(pair.query, residual)) + 0x1p-25 * query +
                    0x1p-20 * query * std::sqrt(bounds::squared_norm(key));
}

double p_of(const Pair& pair, double seeds) {
  const double beyond = std::abs(pair.sum - seeds * pair.exact) - pair.allowance;
  if (std::isnan(beyond)) return 0;
  return beyond <= 0 ? 1 : std::min(1.0, 2 * std::exp(-beyond * beyond / (2 * pair.variance)));
}

void add_mean_row(bounds::CheckContext& context, const std::string& name, const std::vector<Pair>& pairs) {
  const auto seeds = static_cast<double>(context.options.seeds);
  double smallest = 1, ratios = 0, own = 0;
  for (const Pair& pair : pairs) {
    smallest = std::min(smallest, p_of(pair, seeds));
    if (pair.with_itself) ratios += pair.sum / seeds / pair.exact, ++own;
  }
  context.law({"E <q, estimate> = <q, k>, " + name, fmt::format("signs={}", context.subject->d())},
              smallest * static_cast<double>(pairs.size()),
              fmt::format("mean of <k, estimate> / |k|^2 over {} seeds and {} keys; tested on the worst of {} pairs",
                          context.options.seeds, own, pairs.size()),
              ratios / own);
}

/// ln of the sum of exponentials of the logits of a query.
double log_partition(const bounds::Subject& subject, std::span<const float> query, const std::vector<float>& keys) {
  std::vector<double> logits;
  double max = -INFINITY, sum = 0;
  for (Index i = 0; i < static_cast<Index>(keys.size()) / subject.d(); ++i) {
    logits.push_back(subject.head.scale * bounds::dot(query, row_of(keys, subject.d(), i)));
    max = std::max(max, logits.back());
  }
  for (const double logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

void add_partition_row(bounds::CheckContext& context, const SketchedKeys& decoders, const std::vector<float>& keys) {
  const bounds::Subject& subject = *context.subject;
  const Index seeds = std::min(partition_seeds, context.options.seeds);
  double with = 0, without = 0;
  for (Index trial = 0; trial < seeds; ++trial) {
    context.poll();
    const std::vector<float> sketched = decoders.estimated(keys, context.seed(trial)),
                             rounded = decoders.same_bits(keys, context.seed(trial));
    for (Index j = 0; j < subject.num_queries(); ++j) {
      const double exact = log_partition(subject, subject.query(j), keys);
      with += log_partition(subject, subject.query(j), sketched) - exact;
      without += log_partition(subject, subject.query(j), rounded) - exact;
    }
  }
  const auto cases = static_cast<double>(seeds * subject.num_queries());
  context.data(
      {"mean of ln(Z' / Z), " + decoders.name, fmt::format("signs={}", subject.d())},
      {.measured = with / cases, .bound = 0},
      fmt::format("Z and Z': sums of exponentials of exact and estimated logits of {} keys; without the sketch, with "
                  "its bit in the codes, {:.3g}; over {} seeds and {} queries",
                  static_cast<Index>(keys.size()) / subject.d(), without / cases, seeds, subject.num_queries()));
}

void run_qjl_unbiased(bounds::CheckContext& context) {
  check_sketched_products(context, sketch_alone(*context.subject, context.backend));
  check_sketched_products(context, turboquant_keys(*context.subject, context.backend));
}

}  // namespace

SketchedKeys sketch_alone(const bounds::Subject& subject, Backend& backend) {
  const Index d = subject.d();
  return {.name = "the sketch alone",
          .rounded = [](const std::vector<float>& keys, std::uint32_t) { return std::vector<float>(keys.size()); },
          .estimated =
              [&subject, &backend, d](const std::vector<float>& keys, std::uint32_t seed) {
                const methods::Draws draws(seed, "qjl.unbiased", subject.head);
                const auto rows = backend.adopt(keys, static_cast<Index>(keys.size()) / d, d);
                return backend.read(methods::sign_estimates(
                    rows, methods::norms_of(rows, backend).stored,
                    methods::matrix_pair(methods::gaussian_matrix(draws, 0, d, d), d, d, 1, backend), backend));
              }};
}

SketchedKeys turboquant_keys(const bounds::Subject& subject, Backend& backend) {
  const auto decoder = [&](const char* bits, const char* qjl) {
    return key_decoder(subject, {.method = "turboquant", .settings = {{"bits", bits}, {"qjl", qjl}}}, backend);
  };
  return {.name = "turboquant with 2 bits",
          .rounded = decoder("1", "false"),
          .estimated = decoder("2", "true"),
          .same_bits = decoder("2", "false")};
}

void check_sketched_products(bounds::CheckContext& context, const SketchedKeys& decoders) {
  const bounds::Subject& subject = *context.subject;
  const Index d = subject.d();
  const std::vector<float> keys = ordinary_keys(subject, sketched_keys);
  const std::vector<float> tested = bounds::evenly_spaced_rows(keys, d, tested_keys);
  std::vector<Pair> pairs = pairs_of(subject, tested);
  for (Index trial = 0; trial < context.options.seeds; ++trial) {
    context.poll();
    const std::vector<float> rounded = decoders.rounded(tested, context.seed(trial)),
                             estimated = decoders.estimated(tested, context.seed(trial));
    for (Pair& pair : pairs)
      add_estimate(pair, row_of(tested, d, pair.key), row_of(rounded, d, pair.key), row_of(estimated, d, pair.key));
  }
  add_mean_row(context, decoders.name, pairs);
  if (decoders.same_bits && subject.num_queries() > 0) add_partition_row(context, decoders, keys);
}

bounds::Check qjl_unbiased() {
  return {.id = "qjl.unbiased",
          .paper = "QJL, arXiv 2406.03482, lemma 3.2; TurboQuant, arXiv 2504.19874, theorem 2",
          .statement = "inner products estimated from signs of random projections are right on average",
          .method = "turboquant",
          .run = run_qjl_unbiased};
}

}  // namespace kvbench::faithful
