// SPDX-License-Identifier: Apache-2.0
// What a configuration does to the cache of a conversation, which is compressed again and again.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <kvbench/loop/configuration.hpp>
#include <kvbench/loop/layer_loop.hpp>

namespace kvbench::loop {

/// Whether the budget says what the cache of a conversation holds after a compression: limits of a cost and bytes count
/// tokens that follow, but for formats, which hold all tokens.
inline bool limits_conversations(const LoopConfiguration& one) {
  return one.method.info->kind == methods::Kind::quantisation || !(one.budget.cost() || one.budget.is_bytes());
}
inline constexpr std::string_view no_limit =
    "tokens that follow a compression count in a cost, so that a conversation has no limit of it; give a share of the "
    "tokens that were seen, such as 25%, or a number of tokens";

/// The configuration of a compression after `seen` tokens, of which a cache holds `held`: a share is one of those seen.
inline LoopConfiguration compression_of(LoopConfiguration one, Index seen, Index held) {
  if (one.method.info->kind != methods::Kind::quantisation)
    one.budget = Budget::tokens(std::min(held, one.budget.resolve(seen, 1)));
  return one;
}

/// Whether a method drops tokens while a model decodes, without being asked to. A cache that is compressed again keeps
/// them until then.
inline bool drops_decoded(const methods::MethodInfo& method) {
  return method.kind == methods::Kind::eviction && (method.streaming || method.observes);
}
inline constexpr std::string_view drops_at_compressions =
    "it drops tokens at compressions alone; bytes and kept tokens are those of the last one";

/// The answer of a layer whose document has `held` of the `seen` tokens, and `appended` more that are in its bytes: its
/// exact cache has all of them. The model's RoPE is not told to methods, whose reasons speak of other models.
inline LayerAnswer in_conversation(LayerAnswer answer, Index seen, Index held, Index appended) {
  if (answer.reason.find("RoPE") != std::string::npos)
    answer.reason =
        "it computes with the positions of tokens, and of a cache that is compressed again only their order is known";
  for (replay::ConfigurationResult& head : answer.heads)
    head.bytes.full *= static_cast<double>(seen + appended) / static_cast<double>(held + appended);
  return answer;
}

}  // namespace kvbench::loop
