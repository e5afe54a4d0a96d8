// SPDX-License-Identifier: Apache-2.0
// The votes of the last prompt queries for the tokens before them, as SnapKV (arXiv 2404.14469) counts them: the scores of the methods
// that differ only in how the budget is spread over the layers.
#pragma once

#include <string_view>

#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench {

/// Explained in snapkv.hpp.
struct WindowVoteParams {
  Index window = 32;
  SelectionParams selection{.pooling = kernels::Pooling::max, .kernel = 7};
};
void fields(ParamVisitor& visitor, WindowVoteParams& params);

/// Attention that each of the n - W tokens before the voting window receives from the window's queries, summed over them: [G, n - W].
/// The window's own tokens take their part of each softmax and have no column. Throws Unavailable, naming the method, where the trace
/// lacks a query of the window.
Buffer<const float> window_votes(const HeadPrompt& head, std::string_view method, Index window, Backend& backend);

}  // namespace kvbench
