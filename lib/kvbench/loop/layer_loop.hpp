// SPDX-License-Identifier: Apache-2.0
// One document in the loop of a model. The context is compressed as `kvbench replay --protocol decode` compresses it on
// a dump of the same tokens, and answers the queries of the scored tokens after it; outputs, metrics, budgets and
// statuses are those of replay by construction. Under the protocol stream the context is empty, and every token is
// answered whose query the document has. Shapes: n tokens of the context, m scored tokens, d = head_dim, dv =
// value_dim.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/loop/configuration.hpp>
#include <kvbench/loop/layer_arrays.hpp>
#include <kvbench/replay/answer/cost_budget.hpp>
#include <kvbench/replay/answer/work_item.hpp>

namespace kvbench::loop {

struct LayerAnswer {
  replay::Status status = replay::Status::ok;
  std::string reason;          ///< why the status is not ok
  std::vector<float> outputs;  ///< [query_heads, m, dv]; empty where the status is not ok
  std::vector<float> exact;    ///< as `outputs`, of exact attention over the same arrays
  std::vector<replay::ConfigurationResult>
      heads;  ///< by kv head; ConfigurationResult::metrics compare with exact attention over the same arrays
  /// By kv head: the tokens of the document that its cache holds after the last scored one, ascending: those of all
  /// query heads, and those that the harness holds beside it. Methods that retrieve hold all tokens. `no_tokens` says
  /// why these tokens cannot be compressed again, if they cannot.
  std::vector<std::vector<Index>> held;
  std::string no_tokens;
};

class LayerLoop {
 public:
  /// `document`: one prompt, n = prompt_tokens, n + m = num_tokens; its layers are those that methods answer, each with
  /// all m scored positions among its query positions. `request`: what configurations have in common (protected tokens,
  /// dense layers, element type of the cache); methods, budgets and seeds are ignored. Throws Error as make_plan()
  /// does.
  LayerLoop(trace::TraceInfo document, replay::ReplayRequest request, replay::RunOptions options,
            const std::atomic<bool>* stop = nullptr);
  ~LayerLoop();

  /// The configuration of the following answers. Configurations of the same method share what it computes from the
  /// context alone. Throws Error as make_plan() does.
  void start(const LoopConfiguration& configuration);

  /// Answers the scored queries of `layer` (index into PromptInfo::layers). The arrays of the context must be the same
  /// in all calls for a layer; those of the scored tokens may differ. Faults of a method become statuses. Throws Error
  /// where the arrays have other shapes or are not finite, std::bad_alloc, Interrupted.
  LayerAnswer answer(std::size_t layer, const LayerArrays& arrays);

  const trace::TraceInfo& document() const { return document_; }

 private:
  trace::TraceInfo document_;
  replay::ReplayRequest request_;
  replay::RunOptions options_;
  const std::atomic<bool>* stop_;
  replay::ReplayPlan plan_;
  /// By work item of a layer: what was prepared refers to its back end.
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::optional<replay::PreparedMethod>> prepared_;  ///< by work item of the plan
  replay::KnownCosts costs_;                                     ///< of this document
};

}  // namespace kvbench::loop
