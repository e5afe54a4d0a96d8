// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <kvbench/replay/plan/request.hpp>
#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

/// How one prompt is replayed.
struct PromptPlan {
  std::size_t prompt = 0;
  Protocol protocol = Protocol::prefill;
  Index tokens = 0;         ///< n
  Index context = 0;        ///< tokens [0, context) are compressed
  Index base = 0;           ///< tokens that shares of a budget refer to: the context, or the prompt's where it streams
  Index token_bytes = 0;    ///< of a key and a value in a deployment's cache
  Index protect_first = 0;  ///< of the context: kept exactly by the harness
  Index protect_last = 0;
  Index middle() const { return context - protect_first - protect_last; }
  /// Tokens after the context are appended one after the other, instead of standing there at once.
  bool appends() const { return protocol == Protocol::decode || protocol == Protocol::stream; }
};

/// Heads that are computed together: one kv head, or all of a layer for methods that see the layer.
struct Unit {
  PromptPlan prompt;
  std::size_t layer = 0;  ///< index into PromptInfo::layers
  std::vector<Index> kv_heads;
  std::vector<std::size_t> methods;  ///< indices into ReplayRequest::methods: those that run here
  bool layer_methods = false;        ///< these are of granularity `layer` (on single heads where these are apart)
  std::size_t first_result = 0;      ///< index of the first head in ReplayPlan::heads

  bool runs(std::size_t method) const { return std::ranges::find(methods, method) != methods.end(); }

  HeadPlace place(std::size_t head) const { return {prompt.prompt, layer, kv_heads[head]}; }
};

struct ReplayPlan {
  std::vector<CellKey> cells;
  std::vector<PromptPlan> prompts;
  std::vector<HeadPlace> heads;
  std::vector<Unit> units;
};

/// Resolves the request against the trace. Throws Error naming field or prompt and the remedy where nothing sensible can run:
/// unknown layers, heads or prompts, no queries to evaluate, a window that is the whole prompt, a budget larger than every
/// context.
ReplayPlan make_plan(const trace::TraceInfo& trace, const ReplayRequest& request);

/// The heads that the request selects by prompts, layers and kv_heads, in plan order. Throws Error where it names what the
/// trace does not have, or leaves nothing.
std::vector<HeadPlace> select_heads(const trace::TraceInfo& trace, const ReplayRequest& request);

/// Tokens that `budget` means in this prompt, protected tokens included.
Index budget_tokens(const PromptPlan& prompt, const Budget& budget, bool protect_outside);

}  // namespace kvbench
