// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/layer_tokens.hpp>

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <kvbench/methods/stages/per_block.hpp>

namespace kvbench::replay {
namespace {

/// The scores of all heads of the calibration text.
const std::map<std::int64_t, std::vector<float>>& head_scores(const Calibration& text, const MethodChoice& choice,
                                                              Backend& backend) {
  HeadScores& scores = *text.head_scores;
  const std::lock_guard lock(scores.mutex);
  const std::string key =
      fmt::format("{}[{}] {} {}", choice.info->name, choice.params.text(), backend.name(), backend.isa());
  return methods::computed_once(scores.known, key, [&] {
    std::map<std::int64_t, std::vector<float>> layers;
    for (const trace::LayerInfo& layer : text.trace->info().prompts[text.prompt].layers) {
      for (Index h = 0; h < text.trace->info().num_kv_heads; ++h) {
        const auto head = load_calibration(text, layer.layer, h, backend);
        layers[layer.layer].push_back(choice.info->score_of_head(*head, choice.params, backend));
      }
    }
    return layers;
  });
}

}  // namespace

/// The budgets of the layers of the model, by depth, at a budget of `tokens`.
const std::vector<Index>& LayerTokens::divided(Index tokens) const {
  if (planned_ && planned_->first == tokens) return planned_->second;
  const PromptPlan& prompt = task_.item.prompt;
  const trace::TraceInfo& trace = task_.trace;
  methods::ModelContext context{.prompt_group = trace.prompts[prompt.prompt].id, .tokens = prompt.base};
  context.layers.assign(trace.cache_layers.begin(), trace.cache_layers.end());
  for (Index l = 0; trace.cache_layers.empty() && l < trace.num_layers; ++l) context.layers.push_back(l);
  if (choice_.info->score_of_head && task_.request.calibration)
    context.head_scores = head_scores(*task_.request.calibration, choice_, backend_);
  return planned_.emplace(tokens, choice_.info->plan(context, tokens, choice_.params)).second;
}

Index LayerTokens::in_layer(Index tokens, std::int64_t layer) const {
  const PromptPlan& prompt = task_.item.prompt;
  if (tokens > prompt.base) {
    throw methods::Infeasible(
        fmt::format("the budget of {} tokens is larger than the context of {}", tokens, prompt.base));
  }
  // A plan may give a layer more than the context; the mean over the layers is the budget and fits.
  if (choice_.info->divides(choice_.params))
    tokens = std::min(divided(tokens).at(static_cast<std::size_t>(task_.trace.depth_of(layer))), prompt.base);
  const Index fixed = prompt.protect_first + prompt.protect_last;
  if (tokens <= fixed) {
    throw methods::Infeasible(
        fmt::format("the budget of {} tokens does not exceed the {} protected tokens", tokens, fixed));
  }
  return tokens - fixed;
}

}  // namespace kvbench::replay
