// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/oracle/balancekv.hpp>

#include <cmath>
#include <map>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

/// The most tokens that are left after `rounds` rounds.
Index left_after(Index tokens, Index rounds, bool pairs) {
  Index alone = 0;
  for (Index round = 0; round < rounds; ++round) {
    alone += pairs ? tokens % 2 : 0;
    tokens /= 2;
  }
  return tokens + alone;
}

/// The tokens in C^0 .. C^T after `tokens` tokens, where every call keeps half of its t.
Index held_by_tree(Index tokens, const PaperTreeSize& tree) {
  std::vector<Index> levels(static_cast<std::size_t>(tree.levels) + 1);
  for (Index j = 1; j <= tokens; ++j) {
    ++levels[0];
    if (j % tree.t != 0) continue;
    Index p = j / tree.t;
    for (std::size_t i = 0; i + 1 < levels.size(); ++i, p /= 2) {
      levels[i + 1] += levels[i] / 2;
      levels[i] = 0;
      if (p % 2 != 0) break;
    }
  }
  Index held = 0;
  for (const Index level : levels) held += level;
  return held;
}

}  // namespace

std::optional<PaperRounds> rounds_of_budget(Index tokens, Index budget, const BalanceSetup& setup) {
  constexpr Index most = 62;
  for (Index rounds = std::max<Index>(0, setup.rounds); rounds <= (setup.rounds >= 0 ? setup.rounds : most); ++rounds) {
    std::optional<PaperRounds> best;
    Index used = 0;
    for (Index recent = 0; recent <= tokens && recent <= budget; ++recent) {
      const Index kept = recent + left_after(tokens - recent, rounds, setup.pairs);
      if (kept > budget || (best && kept <= used)) continue;
      best = PaperRounds{rounds, recent};
      used = kept;
    }
    if (best) return best;
  }
  return std::nullopt;
}

std::optional<PaperTreeSize> tree_of_budget(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                            const BalanceSetup& setup) {
  if (setup.t > 0 && setup.rounds >= 0) return PaperTreeSize{setup.t, setup.rounds};
  const Index n = plan.prompt, d = subject.d(), dv = subject.dv();
  std::map<int, Index> buckets;
  for (Index i = 0; i < n; ++i) {
    const double norm = std::sqrt(bounds::squared_norm(subject.value(i)));
    if (norm > 0) ++buckets[bucket_of_norm(norm)];
  }
  for (Index t = std::max<Index>(2, n + n % 2); t >= 2; t -= 2) {
    const Index levels =
        n > t ? static_cast<Index>(std::ceil(std::log2(static_cast<double>(n) / static_cast<double>(t)))) : 0;
    // Without levels N and D are the same tokens, which are stored once.
    Index numbers = levels == 0 ? n * (d + dv) : held_by_tree(n, {t, levels}) * d;
    if (levels > 0) {
      for (const auto& [bucket, count] : buckets) numbers += held_by_tree(count, {t, levels}) * (d + dv);
    }
    if (numbers <= plan.budget * (d + dv)) return PaperTreeSize{t, levels};
  }
  return std::nullopt;
}

}  // namespace kvbench::faithful
