// SPDX-License-Identifier: Apache-2.0
// What the files of DocumentRun share.
#pragma once

#include <string>
#include <vector>

#include <apps/kveval/document_run.hpp>
#include <apps/kveval/held_context.hpp>
#include <apps/kveval/pass_summary.hpp>

namespace kvbench::kveval {

constexpr Index observation_window = 128;  // queries of the context that methods see, as in dumps

std::vector<int> batches_of(Index tokens);
std::vector<std::int64_t> positions_from(Index begin, Index count);
/// That of a layer; empty where there is none.
std::span<const float> projection_of(const Machine& machine, int layer);
/// The trace that a dump of these tokens would be, with the layers in which methods can run and the queries at these
/// positions. In place of sketches it has W_O.
trace::TraceInfo describe(const Machine& machine, const llama::Capture& capture, const std::vector<int>& layers,
                          const std::vector<std::int32_t>& tokens, Index context,
                          const std::vector<std::int64_t>& positions);

/// Ends the pass of a configuration.
struct Ended {
  replay::Status status;
  std::string reason;
};
/// A layer stays exact, for which llama.cpp needs the prompt.
struct NeedsPrompt {};

struct DocumentRun::Part {
  Index begin, count;  ///< of its tokens
  loop::LayerLoop loop;
  HeldContext* held = nullptr;  ///< of a conversation: its context
  Index observed = 0;           ///< queries of the context that methods see
  bool keeps_decoded = false;   ///< in addition to the method

  const std::vector<std::int64_t>& positions() const {
    return loop.document().prompts.front().layers.front().query_positions;
  }
};

struct DocumentRun::Pass {
  eval::PassResult result;
  bool windows = false;  ///< whether the method runs in layers with a sliding window, too
  llama::Sequence sequence = llama::Sequence::prompt;
  PassSummary summary;
  std::string note;                      ///< on how a conversation was run
  std::vector<int> exact;                ///< layers that stay so, because the method cannot run on them
  std::vector<float> logits;             ///< [m, vocabulary]
  std::vector<llama::LayerPass> layers;  ///< by layer of the model
};

}  // namespace kvbench::kveval
