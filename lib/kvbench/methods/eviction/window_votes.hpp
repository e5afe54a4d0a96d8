// SPDX-License-Identifier: Apache-2.0
// The votes of the last prompt queries for the tokens before them, as in SnapKV (arXiv 2404.14469): the scores of
// methods that differ only in the distribution of the budget over layers.
#pragma once

#include <string_view>

#include <kvbench/methods/stages/score_only.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

/// Explained in snapkv.cpp.
struct WindowVoteParams {
  Index window = 32;
  SelectionParams selection{.group = {.per = GroupChoice::Per::kv_head}, .pooling = kernels::Pooling::max, .kernel = 7};
};
void fields(ParamVisitor& visitor, WindowVoteParams& params);

/// Throws Unavailable, naming the method, where the trace lacks a query of the last W positions.
void check_window(const ContextData& data, std::string_view method, Index window);

/// Attention that each of the n - W tokens before the voting window receives from the window's queries, the mean over
/// them: [G, n - W]. The tokens of the window, and those that the harness keeps outside the context, take part in each
/// softmax but have no column. Throws as check_window() does.
Buffer<const float> window_votes(const HeadPrompt& head, std::string_view method, Index window, Backend& backend);

/// Whether the token of the last query has a weight of its own, or is kept.
enum class LastToken { competes, kept };
/// Weights of the last query, the mean over all query heads of a layer: n numbers, or n - 1 without the last token,
/// which takes part in each softmax. Throws as check_window() does.
TokenNumbers last_query_weights(std::span<const HeadPrompt> heads, std::string_view method, LastToken last,
                                Backend& backend);

}  // namespace kvbench::methods
