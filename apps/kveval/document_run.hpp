// SPDX-License-Identifier: Apache-2.0
// One document in the model: its context passes through the model once, its scored tokens once per configuration.
#pragma once

#include <map>

#include <kvbench/eval/results.hpp>
#include <kvbench/loop/layer_loop.hpp>

#include <apps/eval/options.hpp>
#include <apps/llama/context.hpp>
#include <apps/llama/injection.hpp>

namespace kvbench::kveval {

/// W_O of layers by their numbers, [query_heads * dv, width]: of those that a method needs it of and of which it is
/// known, from the first document on.
using Projections = std::map<int, std::vector<float>>;

/// What does not change between documents.
struct Machine {
  const Options& options;
  const llama::Model& model;
  llama::Context& context;
  llama::Injector& injector;
  Projections& projections;
};

/// Predictions of the scored tokens after the short context alone.
std::vector<eval::ShortScore> score_short_context(const Machine& machine, const eval::TaskDocument& document);

class DocumentRun {
 public:
  /// Passes the context and the scored tokens through the unchanged model. Throws as llama::run_batches() and
  /// LayerLoop.
  DocumentRun(const Machine& machine, const eval::TaskDocument& document);

  /// The layers in which methods can run, ascending: those recorded, without sliding windows and caps of logits.
  const std::vector<int>& layers() const { return layers_; }

  /// One configuration; the document's index and the configuration's are left to the caller. Throws Error,
  /// std::bad_alloc, Interrupted.
  eval::PassResult run(const loop::LoopConfiguration& configuration, kvbench::eval::Injection injection);

 private:
  struct Pass;
  bool answers(int layer, const kvbench::eval::Injection& injection) const;
  llama::Replacement replace(const llama::LayerCapture& captured, Pass& pass, Index begin, Index count);
  /// Passes the scored tokens [begin, begin + count) through the model.
  void decode(Index begin, Index count, llama::Sequence sequence);
  void run_pass(Pass& pass);
  void pass_tokens(Pass& pass, Index begin, Index count);
  void score(std::span<const float> logits, eval::PassResult& result) const;
  void add_errors(const std::vector<llama::LayerPass>& passes, eval::PassResult& result) const;

  Machine machine_;
  const eval::TaskDocument& document_;
  std::vector<std::int32_t> tokens_;  ///< context and scored tokens
  Index begin_ = 0, count_ = 0;       ///< of the scored tokens
  std::vector<int> layers_;
  std::optional<loop::LayerLoop> loop_;
  std::vector<float> full_logits_;               ///< [m, vocabulary] of the unchanged model
  std::vector<std::vector<float>> full_hidden_;  ///< by layer of the model, [m, width]
};

}  // namespace kvbench::kveval
