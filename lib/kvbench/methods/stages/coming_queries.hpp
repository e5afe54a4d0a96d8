// SPDX-License-Identifier: Apache-2.0
// Scores of tokens for queries to come, from what the observed queries have in
// common before RoPE. These are the queries that the calibration text, or else
// the context, holds. Functions throw Unavailable, naming the method,
// where it holds none, and where the model's RoPE is scaled or the head
// dimension odd.
#pragma once

#include <string_view>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

/// Expected Attention (arXiv 2510.00636): the weights that normal queries at
/// the next `count` positions behind the prompt are expected to give to the
/// tokens from `first` <= n on, the mean over the query group. Mean and
/// covariance S are those before RoPE of the queries from position `first` on,
/// turned by the mean rotation R of the positions to R mean and R S R'; a
/// weight is the softmax of ln of the mean of exp(scale <q, k>), scale <mean,
/// k> + scale^2 k' S k / 2.
TokenNumbers expected_weights(const HeadPrompt& head, std::string_view method, Index first, Index count,
                              Backend& backend);

/// TriAttention (arXiv 2604.04921): scores [G*n] of each query head. The mean
/// query turned to the positions 1, 2, 4, ...
/// <= reach ahead of the prompt's end, times the key, in the mean over them;
/// plus, for each pair of channels that RoPE turns, the length of the key's
/// pair times the mean length of the queries' pairs beyond that of their mean;
/// z-scores over the tokens.
TokenNumbers ahead_scores(const HeadPrompt& head, std::string_view method, Index reach, Backend& backend);

/// DuoAttentionPress of kvpress: the mean key of the text before RoPE at the positions 0 .. count - 1, the mean query
/// at the last of them; the mean over them of its attention up to each, and over the query group: 1 where it goes to
/// the first position, 1 / count to the last, about 1/2 to all alike.
float early_attention(const HeadPrompt& text, std::string_view method, Index count, Backend& backend);

/// The keys [n, d] before RoPE: those of the trace, or else turned back. Throws Unavailable, naming the method, where
/// neither is possible.
Buffer<const float> keys_before_rope(const HeadPrompt& head, std::string_view method, Backend& backend);

}  // namespace kvbench::methods
