// SPDX-License-Identifier: Apache-2.0
// pyramidkv: the votes of SnapKV with a budget that falls from layer to layer, because attention is spread in low
// layers and concentrated in high ones. PyramidKV, arXiv 2406.02069, section 4; the integer rules are those of the
// released code.
//
// For a context of n tokens, a mean budget of B tokens and L layers: past = B - W, min = past / beta, max = 2 past -
// min; where max >= n - W: max = n - W, min = 2 past - max; step = (max - min) / (L - 1); layer l keeps W + max - l
// step tokens. All divisions round down. Where n < 2 past every layer keeps B tokens, and where n < B all tokens.
// Decoded tokens are kept exactly.
//
// Parameters:
//   beta     minimum of the layers as a share of the mean budget: past / beta, default 20 (released code; the text's
//            analysis gives it the same role)
//   window   W, tokens, default 32 as in snapkv, so that both compare at one window (the released script has 8 for
//            pyramidkv and 32 for the other methods)
//   kernel, pooling, per, reduce, order: as in snapkv; the released code selects per query head, as snapkv's does
// Complexity and memory: as snapkv, with the layer's budget in place of B.
// Deviations: the step is rounded down, so that the layers hold up to (L - 2) / 2 tokens more than B on average. The
// column budget_tokens reports the mean over the layers in the trace, which is B only where the trace has all layers. B
// <= W (the released code stops there) and L = 1 (it divides by zero) give every layer B.
#pragma once

#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench::methods {

struct PyramidkvParams : WindowVoteParams {
  Index beta = 20;
};
void fields(ParamVisitor& visitor, PyramidkvParams& params);
void check(const PyramidkvParams& params);

MethodInfo pyramidkv_method();

}  // namespace kvbench::methods
