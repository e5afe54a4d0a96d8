// SPDX-License-Identifier: Apache-2.0
// uniform-repo: the uniform sampling that the released BalanceKV code uses as its baseline: fair coins in place of the
// walk. BalanceKV, arXiv 2502.07861, the code of Fig. 2.
//
// Each of T rounds gives its n tokens fair signs, except +1 to the first of each block. It keeps the first floor(n / 2)
// tokens after a stable sort that places -1 before +1. All have weight 2^T in both sums. Rates are therefore powers of
// 1/2, early tokens of the -1 class are preferred, and the first token of a block is kept last: the sampling is not
// quite uniform, unlike `uniform`. A budget of B tokens gives the smallest T that fits; the rest of B is a window of
// the most recent tokens, kept exactly. Decoded tokens are kept exactly.
//
// Parameters:
//   block   tokens per block, default 256 (paper and notebook); 128 on the command line
//   rounds  T, default -1: from the budget
// Protocol of the figure: that of `balancekv-repo`.
// Complexity: O(n) per seed, O(B (d + dv)) per query. Memory: B (d + dv) numbers and one weight per token.
#include <kvbench/methods/sampling/methods.hpp>

#include <cmath>

#include <kvbench/methods/sampling/softmax_balance.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct UniformRepoParams {
  Index block = 256;
  Index rounds = -1;
};

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

void fields(ParamVisitor& visitor, UniformRepoParams& params) {
  visitor.integer("block", params.block, {.min = 2}, "tokens per block, the first of which gets +1");
  visitor.integer("rounds", params.rounds, {.min = -1, .max = 40}, "T; -1: from the budget");
}

}  // namespace

MethodInfo uniform_repo_method() {
  return with_params<UniformRepoParams>(
      {
          .name = "uniform-repo",
          .paper = "BalanceKV, arXiv 2502.07861, released baseline of Fig. 2",
          .summary = "tokens halved by fair coins, the baseline of the released code of BalanceKV",
          .notes = "Rates are powers of 1/2, and the first token of each block is kept last; `uniform` is uniform.",
          .complexity = {.compress = {"O(n)", 1}, .memory = {"B (d + dv) + B"}},
          .kind = Kind::sampling,
          .seeded = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("a different number of rounds gives a different sample"),
                         .weight_sum = WeightSum::at_most_context},
      },
      prepare);
}

}  // namespace kvbench::methods
