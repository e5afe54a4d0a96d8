// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861v3): a lower bound on the memory of any approximation, by reduction from INDEX. A stream
// encodes one bit per token: nearly orthogonal keys, values +1 or -1. A query along key i returns bit i. Whoever
// answers for a random i, unknown when the cache was made, with probability 2/3 needs memory for a constant fraction of
// the bits. A cache of B of n tokens guesses the others, of which half are right.
//
// Every method of the registry that keeps a subset, samples or means runs at B = n/16 on such a stream. A unit is the
// query of one token; it fails where the answer is off by more than 1/2. The claim is that more than a third of the
// units fail. docs/theory/balancekv.lower_bound.md.
#include <kvbench/bounds/balancekv/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index index_tokens = 512, index_queries = 256, index_dim = 64;
constexpr double most_lost =
    1.0 / 3;                         // INDEX asks for each bit with probability 2/3; guesses are right for half of them
constexpr float index_scale = 0.5F;  // of logits: 32 at the token of a query, at most about 16 at others

bool keeps_fewer(const methods::MethodInfo& method) {
  return method.kind == methods::Kind::eviction || method.kind == methods::Kind::sampling ||
         method.kind == methods::Kind::merging;
}

/// |answer - exact answer| of each query.
std::vector<double> answer_errors(const Subject& subject, const methods::MethodInfo& method, Index budget,
                                  std::uint32_t seed, Backend& backend) {
  Session session(method.prepare_head(subject.head, method.bind({}), backend)(budget, seed), subject.tokens(), backend);
  const methods::QueryBlock block = attending_block(subject, backend);
  const methods::HostState sums = session.attend(0, subject.all_tokens(), block, session.entries({block}).front(),
                                                 methods::empty_state(backend, subject.num_queries(), subject.dv()));
  std::vector<double> errors;
  for (std::size_t q = 0; q < sums.den.size(); ++q) {
    const Index token = static_cast<Index>(q) * subject.tokens() / subject.num_queries();
    errors.push_back(std::abs(double{sums.num[q]} / double{sums.den[q]} - double{subject.value(token)[0]}));
  }
  return errors;
}

void run_balancekv_lower_bound(CheckContext& context) {
  const Subject subject = index_instance(index_tokens, index_queries, context.backend);
  const Index budget = index_tokens / 16;
  for (const methods::MethodInfo& method : methods::all_methods()) {
    if (!keeps_fewer(method)) continue;
    context.poll();
    try {
      check_index_errors(context, method.name, budget,
                         answer_errors(subject, method, budget, context.seed(0), context.backend));
    } catch (const methods::Unavailable&) {  // needs data that the stream lacks
    } catch (const methods::Infeasible&) {
    }
  }
}

}  // namespace

Subject index_instance(Index n, Index queries, Backend& backend) {
  const auto bit = [](Index row, Index col, std::uint32_t what) {
    const PhiloxBlock words =
        philox4x32({{static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(col), what, 0}}, {0x1de, 0});
    return words.x[0] % 2 == 0 ? 1.0F : -1.0F;
  };
  std::vector<float> keys, values, asked;
  for (Index i = 0; i < n; ++i) {
    for (Index c = 0; c < index_dim; ++c) keys.push_back(bit(i, c, 0));
    values.push_back(bit(i, 0, 1));
  }
  for (Index q = 0; q < queries; ++q) {
    const auto key = keys.begin() + q * n / queries * index_dim;
    asked.insert(asked.end(), key, key + index_dim);
  }
  return make_subject({.name = "synthetic:index",
                       .keys = std::move(keys),
                       .values = std::move(values),
                       .queries = std::move(asked),
                       .d = index_dim,
                       .scale = index_scale},
                      backend);
}

void check_index_errors(CheckContext& context, const std::string& method, Index budget,
                        std::span<const double> errors) {
  const auto failed = std::ranges::count_if(errors, [](double error) { return !(error <= 0.5); });
  const auto trials = std::ssize(errors);
  CheckRow& row = context.claim(
      {"more than a third of the bits is lost", fmt::format("{};B={}", method, budget)},
      decide_between(binomial_tail(failed, trials, most_lost), binomial_tail(trials - failed, trials, 1 - most_lost)),
      fmt::format("the answers to {} of {} queries, each along the key of one token, are off by more than 1/2", failed,
                  trials),
      {.measured = static_cast<double>(failed) / static_cast<double>(trials), .bound = most_lost});
  row.source = "synthetic:index";
}

Check balancekv_lower_bound() {
  return {.id = "balancekv.lower_bound",
          .paper = "BalanceKV, arXiv 2502.07861v3, space lower bound by reduction from INDEX",
          .statement =
              "on a stream of one bit per token every method that keeps few tokens loses more than a third of the bits",
          .scope = Scope::once,
          .run = run_balancekv_lower_bound};
}

}  // namespace kvbench::bounds
