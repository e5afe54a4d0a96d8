// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/uniform.hpp>

#include <algorithm>
#include <map>

#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::faithful {
namespace {

/// Ids with the number of times that they were drawn.
using Drawn = std::map<TokenId, double>;

Drawn draw_uniform(const methods::Draws& draws, Index tokens, Index count, UniformRules::Sample sample) {
  Drawn drawn;
  std::vector<std::pair<double, TokenId>> order;
  for (Index i = 0; i < tokens; ++i) order.emplace_back(draws.uniform(i), static_cast<TokenId>(i));
  if (sample == UniformRules::Sample::lowest_draws) std::ranges::sort(order);
  for (Index k = 0; k < count; ++k) {
    const auto& [u, token] = order[static_cast<std::size_t>(k)];
    const bool again = sample == UniformRules::Sample::with_replacement;
    drawn[again ? static_cast<TokenId>(u * static_cast<double>(tokens)) : token] += 1;
  }
  return drawn;
}

/// Snapshots of a selection of the context to which decoded tokens are added. Nothing here is rounded, so all are
/// decided.
OracleRun uniform_stream(const bounds::StreamPlan& plan, const std::map<TokenId, double>& context, bool decoded_kept,
                         double decoded_weight) {
  bounds::Snapshot now{.tokens = plan.prompt};
  const auto hold = [&](TokenId token, double weight) {
    bounds::HeldEntry& entry = now.held.emplace_back();
    entry.id = token;
    entry.num = entry.den = weight;
  };
  for (const auto& [token, weight] : context) hold(token, weight);
  OracleRun run{.times = {now}};
  for (Index i = 0; i < plan.appended; ++i) {
    ++now.tokens;
    if (decoded_kept) hold(static_cast<TokenId>(plan.prompt + i), decoded_weight);
    run.times.push_back(now);
  }
  run.decided = std::ssize(run.times);
  return run;
}

struct Halvings {
  Index rounds = 0, window = 0;
};

/// The smallest number of rounds T for which a window of w recent tokens and the floor((n - w) / 2^T) tokens left of
/// the others fit, and the shortest of the windows that use most of the budget.
Halvings uniform_repo_halvings(Index tokens, Index budget, Index rounds) {
  for (Halvings plan{.rounds = std::max<Index>(0, rounds)}; plan.rounds < 62; ++plan.rounds) {
    Index most = -1;
    for (Index window = 0; window <= std::min(budget, tokens); ++window) {
      const Index kept = window + (tokens - window) / (Index{1} << plan.rounds);
      if (kept <= budget && kept > most) most = kept, plan.window = window;
    }
    if (most >= 0) return plan;
    if (rounds >= 0) break;
  }
  throw methods::Infeasible("no number of rounds fits the budget");
}

std::vector<TokenId> uniform_repo_half(const std::vector<TokenId>& tokens, const methods::Draws& draws, Index round,
                                       Index block, const UniformRepoRules& rules) {
  std::vector<TokenId> plus, minus;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double u = draws.uniform(tokens[i], rules.new_draws_each_round ? static_cast<std::uint32_t>(round) : 0);
    const bool first = static_cast<Index>(i) % block == 0;
    ((first && rules.first_is_plus) || u < 0.5 ? plus : minus).push_back(tokens[i]);
  }
  std::vector<TokenId>&head = rules.minus_first ? minus : plus, &rest = rules.minus_first ? plus : minus;
  head.insert(head.end(), rest.begin(), rest.end());
  head.resize(tokens.size() / 2);
  return head;
}

}  // namespace

OracleRun uniform_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan, const UniformRules& rules) {
  const Index kept = std::min(plan.budget, plan.prompt);
  const auto n = static_cast<double>(plan.prompt), m = static_cast<double>(kept);
  const methods::Draws draws(rules.seeded ? plan.seed : 0, "uniform", subject.head);
  Drawn drawn = draw_uniform(draws, plan.prompt, kept, rules.sample);
  const double weight = kept < plan.prompt ? rules.weight(n, m) : 1;
  for (auto& [token, times] : drawn) times *= weight;
  return uniform_stream(plan, drawn, rules.decoded_kept, rules.decoded_weight(n, m));
}

OracleRun uniform_repo_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                              const UniformRepoSizes& sizes, const UniformRepoRules& rules) {
  const Halvings halvings = uniform_repo_halvings(plan.prompt, plan.budget, sizes.rounds);
  const methods::Draws draws(plan.seed, "uniform-repo", subject.head);
  std::vector<TokenId> left;
  for (Index i = 0; i < plan.prompt - halvings.window; ++i) left.push_back(static_cast<TokenId>(i));
  for (Index round = 0; round < halvings.rounds; ++round)
    left = uniform_repo_half(left, draws, round, sizes.block, rules);
  const double weight = halvings.rounds > 0 ? rules.weight(static_cast<double>(halvings.rounds)) : 1;
  Drawn context;
  for (const TokenId token : left) context[token] = weight;
  for (Index i = plan.prompt - halvings.window; i < plan.prompt; ++i) {
    context[static_cast<TokenId>(i)] = rules.window_exact ? 1 : weight;
  }
  return uniform_stream(plan, context, true, 1);
}

}  // namespace kvbench::faithful
