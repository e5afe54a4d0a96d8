// SPDX-License-Identifier: Apache-2.0
// Heads small enough for results computed by hand.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <support/backends.hpp>

#include <kvbench/testing/head.hpp>

#include <kvbench/methods/registry.hpp>

namespace kvbench::testing {

/// d = dv = 1, scale 1, values 1, 2, 4, 8, ...: token j has key keys[j] and value 2^j; every query is 1 for every query
/// head, so that the logit of token j is keys[j].
inline HeadData small_head(std::vector<float> keys, Index n, Index group = 1) {
  const auto total = static_cast<Index>(keys.size());
  HeadData head{.n = n, .total = total, .d = 1, .dv = 1, .group = group, .keys = std::move(keys)};
  for (Index j = 0; j < total; ++j) head.values.push_back(static_cast<float>(std::ldexp(1.0, static_cast<int>(j))));
  head.queries.assign(static_cast<std::size_t>(group * total), 1);
  return head;
}

/// Logits whose softmax weights are proportional to `weights`.
inline std::vector<float> logs(std::vector<float> weights) {
  for (float& w : weights) w = std::log(w);
  return weights;
}

inline std::unique_ptr<methods::CompressedCache> open_cache(const std::string& method,
                                                            std::vector<methods::Assignment> settings,
                                                            const methods::HeadPrompt& prompt, Index budget,
                                                            std::uint32_t seed, Backend& backend = ref()) {
  const methods::MethodInfo& info = methods::find_method(method);
  return info.prepare_head(prompt, info.bind(settings), backend)(budget, seed);
}

/// Appends as many of the tokens as the cache takes at once, and returns how many.
inline Index append(methods::CompressedCache& cache, const methods::TokenBlock& tokens) {
  const Index taken = cache.takes(tokens);
  cache.append(tokens.front(taken));
  return taken;
}

/// Tokens that answer query row `row` of the block.
inline std::vector<TokenId> answering(const methods::CompressedCache& cache, const methods::QueryBlock& block,
                                      const HeadData& head, std::size_t row = 0, Backend& backend = ref()) {
  return ids_of(visible_entries(head, cache.entries(block), block, backend)[row]);
}

/// The tokens of the context that answer query head `row` of the token after it.
inline Ids kept_tokens(const std::string& method, std::vector<methods::Assignment> settings, const HeadData& head,
                       Index budget, std::size_t row = 0, Backend& backend = ref()) {
  const auto cache = open_cache(method, std::move(settings), prompt_of(head, backend), budget, 0, backend);
  return answering(*cache, query_block(head, head.n, head.n + 1, head.n + 1, backend), head, row, backend);
}

}  // namespace kvbench::testing
