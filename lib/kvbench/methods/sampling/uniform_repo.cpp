// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/uniform_repo.hpp>

#include <cmath>

#include <kvbench/methods/sampling/softmax_balance.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The first half of the tokens after a stable sort by sign.
std::vector<TokenId> halve(const std::vector<TokenId>& tokens, const std::vector<double>& uniforms, Index block) {
  std::vector<TokenId> order, positive;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool plus = static_cast<Index>(i) % block == 0 || uniforms[i] < 0.5;
    (plus ? positive : order).push_back(tokens[i]);
  }
  order.insert(order.end(), positive.begin(), positive.end());
  order.resize(tokens.size() / 2);
  return order;
}

std::unique_ptr<CompressedCache> compress(const HeadPrompt& head, const UniformRepoParams& params, Index budget,
                                          std::uint32_t seed, Backend& backend) {
  const Index n = head.tokens();
  const HalvingPlan plan = plan_halving("uniform-repo", n, budget, params.rounds, left_of_halves);
  KeptTokens kept{.ids = token_range(0, n - plan.recent), .fixed = {.recent = plan.recent}};
  const Draws draws(seed, "uniform-repo", head);
  for (Index round = 0; round < plan.rounds; ++round) {
    kept.ids = halve(kept.ids, token_uniforms(draws, kept.ids, static_cast<std::uint32_t>(round)), params.block);
  }
  if (plan.rounds > 0) kept.weight.assign(kept.ids.size(), std::ldexp(1.0f, static_cast<int>(plan.rounds)));
  for (Index i = n - plan.recent; i < n; ++i) kept.ids.push_back(static_cast<TokenId>(i));
  if (plan.rounds > 0) kept.weight.resize(kept.ids.size(), 1);
  return std::make_unique<KeptCache>(backend, head, std::move(kept));
}

MakeCache prepare(const HeadPrompt& head, const UniformRepoParams& params, Backend& backend) {
  return [head, params, &backend](Index budget, std::uint32_t seed) {
    return compress(head, params, budget, seed, backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, UniformRepoParams& params) {
  visitor.integer("block", params.block, {.min = 2}, "tokens per block, the first of which gets +1");
  visitor.integer("rounds", params.rounds, {.min = -1, .max = 40}, "T; -1: from the budget");
}

MethodInfo uniform_repo_method() {
  return with_params<UniformRepoParams>(
      {
          .name = "uniform-repo",
          .paper = "BalanceKV, arXiv 2502.07861, released baseline of Fig. 2",
          .summary = "tokens halved by fair coins, the baseline of the released code of BalanceKV",
          .notes = "Rates are powers of 1/2, and the first token of each block is kept last; `uniform` is uniform.",
          .complexity = {.compress = "O(n)",
                         .query = "O(B (d + dv))",
                         .memory = "B (d + dv) + B",
                         .growth = {.compress = 1, .query = 0, .memory = 0}},
          .kind = Kind::sampling,
          .seeded = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("a different number of rounds gives a different sample"),
                         .weight_sum = WeightSum::at_most_context},
      },
      prepare);
}

}  // namespace kvbench::methods
