// SPDX-License-Identifier: Apache-2.0
// One document in the model: its context passes through the model once, its scored tokens once per configuration. Under
// the protocol stream the whole document passes through it once more per configuration, with every token in the
// configuration's cache.
#pragma once

#include <map>

#include <kvbench/eval/results.hpp>
#include <kvbench/loop/layer_loop.hpp>

#include <apps/eval/options.hpp>
#include <apps/llama/context.hpp>
#include <apps/llama/injection.hpp>

namespace kvbench::kveval {

class HeldContext;

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

/// What the full cache says after a context: up to Options::generation tokens, the last of which may be an end token.
std::vector<int> own_answer(const Machine& machine, const std::vector<int>& context);

class DocumentRun {
 public:
  /// Passes the context and the scored tokens through the unchanged model. Throws as llama::run_batches() and
  /// LayerLoop.
  DocumentRun(const Machine& machine, const eval::TaskDocument& document);
  ~DocumentRun();

  /// The layers in which methods can run, ascending: those recorded, without caps of logits.
  const std::vector<int>& layers() const { return layers_; }
  /// Those of them with a sliding window, in which only methods that round run.
  const std::vector<int>& windowed() const { return windowed_; }

  /// One configuration; the document's index and the configuration's are left to the caller. Throws Error,
  /// std::bad_alloc, Interrupted.
  eval::PassResult run(const loop::LoopConfiguration& configuration, kvbench::eval::Injection injection);

 private:
  struct Pass;
  class FreeRun;
  struct Part;  ///< tokens that pass together, and the loop that answers them
  bool streams() const { return first_ == 0; }
  bool is_conversation() const { return document_.first_turn > 0; }
  bool keeps_full() const { return streams() || is_conversation(); }
  void add_part(Index begin, Index count, const std::vector<std::int64_t>& positions);
  void stream_parts(bool every_query);
  bool answers(int layer, const Pass& pass) const;
  llama::Replacement replace(const llama::LayerCapture& captured, Pass& pass, Part& part, Index begin, Index count);
  /// Passes the tokens [begin, begin + count) through the model.
  void decode(const std::vector<std::int32_t>& tokens, Index begin, Index count, llama::Sequence sequence);
  /// What the caches of a configuration say after the context, as own_answer(); the first token is that of the full
  /// cache's answer. `scored`: the pass of the scored tokens.
  std::vector<int> answer(const loop::LoopConfiguration& configuration, const Pass& scored);
  void add_answer(const loop::LoopConfiguration& configuration, Pass& pass);
  void run_pass(Pass& pass);
  // Of conversations: run_pass(), part by part between two compressions.
  void run_conversation(Pass& pass, const loop::LoopConfiguration& configuration);
  loop::LayerAnswer answer_held(std::size_t layer, const llama::LayerCapture& captured, Part& part);
  trace::TraceInfo describe_part(const HeldContext& held, Index observed, Index count, bool sums) const;
  std::vector<const llama::LayerCapture*> captured() const;  ///< by index of layers_
  void read_exactly(const Pass& pass, Index end);
  void pass_tokens(Pass& pass, Part& part, Index begin, Index count);
  void score(std::span<const float> logits, eval::PassResult& result) const;
  void add_errors(const std::vector<llama::LayerPass>& passes, eval::PassResult& result) const;

  Machine machine_;
  const eval::TaskDocument& document_;
  std::vector<std::int32_t> tokens_;  ///< context and scored tokens
  Index begin_ = 0, count_ = 0;       ///< of the scored tokens
  Index first_ = 0;                   ///< token that a configuration answers: 0 under the protocol stream, else begin_
  std::vector<int> layers_, windowed_;
  std::vector<std::unique_ptr<Part>> parts_;     ///< that a configuration answers, in order
  std::vector<float> full_logits_;               ///< [m, vocabulary] of the unchanged model
  std::vector<std::vector<float>> full_hidden_;  ///< by layer of the model, [m, width]
  /// Under the protocol stream, and of conversations: what the unchanged model has. Each configuration begins with it,
  /// so that what its caches know of tokens that have not come yet (the bytes that they will take) depends on no other
  /// configuration.
  std::vector<llama::LayerCapture> full_layers_;
};

}  // namespace kvbench::kveval
