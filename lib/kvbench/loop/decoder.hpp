// SPDX-License-Identifier: Apache-2.0
// A document whose end is not known: the context of each layer is compressed as LayerLoop compresses it, and then every
// token that the model decodes is appended and answered. Shapes as there.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <kvbench/loop/configuration.hpp>
#include <kvbench/loop/layer_arrays.hpp>
#include <kvbench/replay/answer/work_item.hpp>

namespace kvbench::loop {

class Stream;

class Decoder {
 public:
  /// `document` and `request` as in LayerLoop; the m tokens after the context are those that are known when it is
  /// compressed: limits of a cost hold for the cache after them. Throws Error as make_plan() does.
  Decoder(trace::TraceInfo document, const replay::ReplayRequest& request, replay::RunOptions options,
          const LoopConfiguration& configuration, const std::atomic<bool>* stop = nullptr);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Compresses the context of a layer (index into PromptInfo::layers), and answers the queries of the m tokens after
  /// it: [query_heads, m, dv]. Throws Error with the layer and the reason where the method has no cache for it, the
  /// arrays do not fit, or an output is not finite; std::bad_alloc, Interrupted.
  std::vector<float> begin(std::size_t layer, const LayerArrays& arrays);

  /// Appends `count` further tokens to a layer and answers their queries: [query_heads, count, dv]. `arrays` are of
  /// these tokens alone.
  std::vector<float> answer(std::size_t layer, Index count, const LayerArrays& arrays);

  /// What the layers hold now, and what their exact caches would hold. A query reads what the last one has read.
  replay::Bytes bytes() const;

 private:
  using Streams = std::vector<std::unique_ptr<Stream>>;  ///< by work item

  /// The caches of a work item, or none and the reason.
  replay::OpenCaches open(const replay::WorkItem& item, const LayerArrays& arrays, Backend& backend,
                          std::string& reason) const;
  std::vector<float> run(std::size_t layer, Index count, const LayerArrays& arrays);

  trace::TraceInfo document_;
  replay::ReplayRequest request_;
  replay::RunOptions options_;
  const std::atomic<bool>* stop_;
  replay::ReplayPlan plan_;
  std::vector<Streams> layers_;  ///< by layer; empty until begin()
};

}  // namespace kvbench::loop
