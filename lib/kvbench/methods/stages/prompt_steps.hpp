// SPDX-License-Identifier: Apache-2.0
// The queries of the context in order, for methods that replay the prompt as a stream of tokens.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// True where the trace holds the query of every position 0 .. n-1 of the context.
bool has_all_queries(const ContextData& data);
/// "the trace has 128 of 3840", for messages of Unavailable.
std::string observed_share(const ContextData& data);

/// Logits of query t for the tokens 0 .. t, one span per query head.
using StepLogits = std::vector<std::span<const float>>;
/// Calls step(t, logits) for t = 0 .. n-1 in order. has_all_queries() must hold.
void for_each_prompt_step(const HeadPrompt& head, Backend& backend,
                          const std::function<void(Index t, const StepLogits& logits)>& step);

/// Softmax over the logits of these tokens alone: out[i] belongs to ids[i].
std::vector<float> softmax_over(std::span<const float> logits, std::span<const TokenId> ids);

}  // namespace kvbench::methods
