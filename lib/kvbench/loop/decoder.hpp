// SPDX-License-Identifier: Apache-2.0
// A document whose end is not known: the context of each layer is compressed as LayerLoop compresses it, and then every
// token that the model decodes is appended and answered. Under the protocol stream every token of the document is.
// Shapes as there.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/loop/configuration.hpp>
#include <kvbench/loop/layer_arrays.hpp>
#include <kvbench/replay/answer/work_item.hpp>

namespace kvbench::loop {

class Stream;

/// The method has no cache for a context: its budget is out of reach there (infeasible), or the document lacks what it
/// needs (skipped). The message names the layer.
class NoCache : public Error {
 public:
  NoCache(replay::Status why, std::string message) : Error("{}", std::move(message)), status(why) {}
  replay::Status status;
};

class Decoder {
 public:
  /// `document` and `request` as in LayerLoop; the m tokens after the context are those that are known when it is
  /// compressed: limits of a cost hold for the cache after them. Throws Error as make_plan() does.
  Decoder(trace::TraceInfo document, const replay::ReplayRequest& request, replay::RunOptions options,
          const LoopConfiguration& configuration, const std::atomic<bool>* stop = nullptr);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Compresses the context of a layer (index into PromptInfo::layers), which is empty under the protocol stream. Keys
  /// and values of the tokens after it measure what a cost allows; where they are not known yet, others of the same
  /// number do. Throws NoCache, and Error where the method fails or the arrays do not fit; std::bad_alloc, Interrupted.
  void compress(std::size_t layer, const LayerArrays& arrays);

  /// compress(), and the outputs of the queries of the m tokens: [query_heads, m, dv]. Throws Error where one is not
  /// finite.
  std::vector<float> begin(std::size_t layer, const LayerArrays& arrays);

  /// Appends `count` further tokens to a layer and answers their queries: [query_heads, count, dv]. `arrays` are of
  /// these tokens alone.
  std::vector<float> answer(std::size_t layer, Index count, const LayerArrays& arrays);

  /// What the layers hold now, and what their exact caches would hold. A query reads what the last one has read.
  replay::Bytes bytes() const;

  /// Means over the kv heads of the layers so far: what the budget is in tokens, and entries that answered a query.
  struct Tokens {
    double budget = 0, kept = 0;
  };
  Tokens tokens() const;

 private:
  using Streams = std::vector<std::unique_ptr<Stream>>;  ///< by work item

  /// The caches of a work item, and their budget in tokens. Throws as compress() does.
  replay::OpenCaches open(const replay::WorkItem& item, const LayerArrays& arrays, Backend& backend,
                          Index& budget) const;
  std::vector<float> run(std::size_t layer, Index count, const LayerArrays& arrays);

  trace::TraceInfo document_;
  replay::ReplayRequest request_;
  replay::RunOptions options_;
  const std::atomic<bool>* stop_;
  replay::ReplayPlan plan_;
  std::vector<Streams> layers_;  ///< by layer; empty until begin()
};

}  // namespace kvbench::loop
