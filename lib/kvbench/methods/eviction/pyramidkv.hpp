// SPDX-License-Identifier: Apache-2.0
// pyramidkv: SnapKV's vote with a budget that falls from layer to layer, because attention is spread in low layers and narrow
// in high ones. PyramidKV, arXiv 2406.02069, section 4; the integer rules are those of the released code.
//
// For a context of n tokens, a mean budget of B tokens and L layers: past = B - W, min = past / beta, max = 2 past - min; where
// max >= n - W: max = n - W, min = 2 past - max; step = (max - min) / (L - 1); layer l keeps W + max - l step tokens. All
// divisions round down. Where n < 2 past every layer keeps B, and where n < B everything. Decoded tokens are kept exactly.
//
// Parameters:
//   beta     layers' minimum as a share of the mean budget: past / beta, default 20 (released code; the text's analysis has the
//            same role for it)
//   window   W, tokens, default 32 as snapkv, so that both compare at one window (the released script has 8 for pyramidkv and
//            32 for the methods beside it)
//   kernel, pooling, per, reduce, order: as snapkv
// Complexity and memory: as snapkv, with the layer's budget in place of B.
// Deviations: the step is rounded down, so that the layers hold up to (L - 2) / 2 tokens more than B on average; the column
// budget_tokens has the mean of the layers in the trace, which is B only where all layers are there. B <= W (the released code
// stops there) and L = 1 (it divides by zero) give every layer B.
#pragma once

#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench {

struct PyramidkvParams : WindowVoteParams {
  Index beta = 20;
};
void fields(ParamVisitor& visitor, PyramidkvParams& params);
void check(const PyramidkvParams& params);

MethodInfo pyramidkv_method();

}  // namespace kvbench
