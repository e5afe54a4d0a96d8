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
#include <kvbench/methods/eviction/methods.hpp>

#include <algorithm>

#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench::methods {
namespace {

struct PyramidkvParams : WindowVoteParams {
  Index beta = 20;
};

std::vector<Index> pyramid(const ModelContext& context, Index budget, const Params& params) {
  const PyramidkvParams& own = params.as<PyramidkvParams>();
  const Index num_layers = std::ssize(context.layers), n = context.tokens;
  const Index past = budget - own.window;
  std::vector<Index> budgets(static_cast<std::size_t>(num_layers), std::min(budget, n));
  if (n < budget || past <= 0 || n < 2 * past || num_layers == 1) return budgets;
  Index least = past / own.beta, most = 2 * past - least;
  if (most >= n - own.window) {
    most = n - own.window;
    least = 2 * past - most;
  }
  const Index step = (most - least) / (num_layers - 1);
  for (Index l = 0; l < num_layers; ++l) budgets[static_cast<std::size_t>(l)] = most - l * step + own.window;
  return budgets;
}

Buffer<const float> score(const HeadPrompt& head, const PyramidkvParams& params, Backend& backend) {
  return window_votes(head, "pyramidkv", params.window, backend);
}

void fields(ParamVisitor& visitor, PyramidkvParams& params) {
  visitor.integer("beta", params.beta, {.min = 1},
                  "the last layer keeps past / beta tokens before the window, past = B - window");
  fields(visitor, static_cast<WindowVoteParams&>(params));
}

void check(const PyramidkvParams& params) { check_selection("pyramidkv", params.selection); }

}  // namespace

MethodInfo pyramidkv_method() {
  MethodInfo info = score_only<PyramidkvParams>(
      {
          .name = "pyramidkv",
          .paper = "PyramidKV, arXiv 2406.02069, section 4",
          .summary = "the votes of SnapKV with a budget that falls from the first layer to the last",
          .notes = "Integer rules of the released code; its step is rounded down, so the mean over layers may exceed "
                   "the budget by a few tokens. The released script gives pyramidkv a window of 8 and the other "
                   "methods 32; here both have 32. It selects per query head over repeated keys (per=query_head); the "
                   "default here is one selection per kv head, as in snapkv.",
          .complexity = {.compress = {"O(G W n d + n log n)", 1}},
          .granularity = Granularity::model,
          .needs = {Part::observed_queries},
          .check_data =
              [](const ContextData& data, const Params& params) {
                check_window(data, "pyramidkv", params.as<PyramidkvParams>().window);
              },
          .properties = {.nested_budgets = Property::no(
                             "a larger mean budget can give a layer less: rounded steps, the uniform fallback")},
          .variants = {{{"per", "query_head"}}},
      },
      score);
  info.plan = pyramid;
  return info;
}

}  // namespace kvbench::methods
