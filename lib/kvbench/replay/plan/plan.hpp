// SPDX-License-Identifier: Apache-2.0
// The plan of a replay: a request resolved against a trace.
#pragma once

#include <algorithm>

#include <kvbench/replay/plan/request.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::replay {

/// What a configuration runs in a kv head of a layer: the same in all of them, or what a plan of layers names there.
struct LayerChoice {
  MethodChoice method;
  Budget budget;
  bool of_layer = false;  ///< the budget is that of this place alone, which shares it with no other layer
};
/// `layer`: number in the model. Throws as planned_choice() does.
LayerChoice choice_at(const ReplayRequest& request, const Configuration& configuration, std::int64_t layer,
                      Index kv_head);

/// Whether the request keeps this layer of the model exactly, without a method.
inline bool keeps_whole(const ReplayRequest& request, std::int64_t layer) { return layer < request.dense_layers; }

/// How one prompt is replayed.
struct PromptPlan {
  std::size_t prompt = 0;
  Protocol protocol = Protocol::prefill;
  Index tokens = 0;   ///< n
  Index context = 0;  ///< tokens [0, context) are compressed
  /// Numbers of the replayed layers in which methods run; all replayed ones where there is none.
  std::vector<std::int64_t> layers;
  Index base = 0;           ///< number of tokens that shares of a budget refer to: the context; in a stream the prompt
  Index token_bytes = 0;    ///< bytes of a key and a value in a deployment's cache
  Index protect_first = 0;  ///< first tokens of the context that the harness keeps exactly
  Index protect_last = 0;   ///< last tokens of the context that the harness keeps exactly
  Index middle() const { return context - protect_first - protect_last; }
  /// Whether the tokens after the context are appended in order; otherwise all of them are present from the start.
  bool appends() const { return protocol == Protocol::decode || protocol == Protocol::stream; }
};

/// One kv head of one layer of one prompt, which is computed by one thread; for methods that see the whole layer, all
/// kv heads of the layer.
struct WorkItem {
  PromptPlan prompt;
  std::size_t layer = 0;  ///< index into PromptInfo::layers
  std::vector<Index> kv_heads;
  std::vector<std::size_t>
      methods;                   ///< ascending indices into ReplayRequest::methods of those that run on this work item
  bool layer_methods = false;    ///< whether they have granularity `layer`, also where they run on single heads
  std::size_t first_result = 0;  ///< index of the first head in ReplayPlan::heads
  Index rounding = 0;            ///< configurations that run on it and hold decoded rows (MethodInfo::rounds)

  bool runs(std::size_t method) const { return std::ranges::binary_search(methods, method); }

  HeadPlace place(std::size_t head) const { return {prompt.prompt, layer, kv_heads[head]}; }
};

struct ReplayPlan {
  std::vector<Configuration> configurations;  ///< by ascending method
  std::vector<PromptPlan> prompts;            ///< by ascending PromptPlan::prompt
  std::vector<HeadPlace> heads;
  std::vector<WorkItem> work_items;
  std::optional<Calibration> calibration;  ///< of the request
};

/// Resolves the request against the trace. Throws Error with the field or prompt at fault and the remedy for unknown
/// layers, heads or prompts, anything but a method that is given twice, layers without queries to evaluate, a window as
/// long as the prompt, and a budget larger than every context.
ReplayPlan make_plan(const trace::TraceInfo& trace, const ReplayRequest& request);

/// A sentence for each budget in tokens for which a share may have been meant, such as 25 for 25%: at most 100 tokens,
/// and less than 5 % of every context.
std::vector<std::string> budget_hints(const ReplayPlan& plan, const ReplayRequest& request);

/// The number of tokens that budgets refer to, `base` without tokens that are protected outside the budget; rows report
/// it.
Index budget_base(const PromptPlan& prompt, bool protect_outside);
/// The number of tokens that `budget` means in this prompt, protected tokens included; for a limit of a cost the first
/// guess.
Index budget_tokens(const PromptPlan& prompt, const Budget& budget, bool protect_outside);
/// The bytes of the tokens of a kv head that are protected outside the budget: limits of a cost do not count them.
double outside_bytes(const PromptPlan& prompt, bool protect_outside);

}  // namespace kvbench::replay
