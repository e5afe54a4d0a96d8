// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/draws.hpp>

#include <algorithm>
#include <utility>

namespace kvbench::methods {

std::vector<TokenId> random_tokens(const Draws& draws, Index tokens, Index count) {
  std::vector<std::pair<double, TokenId>> drawn;
  for (Index i = 0; i < tokens; ++i) drawn.emplace_back(draws.uniform(i), static_cast<TokenId>(i));
  std::ranges::sort(drawn);
  drawn.resize(static_cast<std::size_t>(std::min(count, tokens)));
  std::vector<TokenId> kept;
  for (const auto& [draw, token] : drawn) kept.push_back(token);
  std::ranges::sort(kept);
  return kept;
}

}  // namespace kvbench::methods
