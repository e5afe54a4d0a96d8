// SPDX-License-Identifier: Apache-2.0
// One configuration (method, parameters, budget, seed) on the heads of a work item, from its cache to the last query.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <kvbench/replay/answer/head_block.hpp>

namespace kvbench {

/// Runs one cache over the blocks of queries in order and measures it. For each block: start(); then, as long as advance() finds
/// queries, collect(), answer() for each head, observe().
class ConfigurationRun {
 public:
  struct Options {
    bool decode = false;  ///< tokens after the context are appended to the cache; otherwise the harness holds them
    bool observes = false;
    bool recall_sinks = false;
    bool standalone = false;  ///< nothing is shared: logits are computed again, and a method that selects by them pays for the scan
    bool selects = false;     ///< the method selects per query
    bool keep_raw = false;
    Element kv_element = Element::f16;
  };
  /// An answer that was computed together with others', and this configuration's share of the time.
  struct Shared {
    Answer answer;
    double seconds = 0;
  };

  /// `results` are those of the work item's heads, in the order of `heads`; both outlive this object.
  ConfigurationRun(std::unique_ptr<LayerCache> cache, Options options, std::span<const Head> heads,
                   std::vector<CellResult*> results);

  /// Whether its entries may be attended to together with those of another configuration.
  bool shares() const { return !options_.standalone && !options_.observes; }

  void start(std::span<HeadBlock> blocks);
  /// Appends decoded tokens until the cache answers queries of the block; empty after the last of them.
  QueryRun advance(std::span<HeadBlock> blocks, Backend& backend);
  /// Asks the cache for the entries that answer the run, and checks them.
  void collect(std::span<HeadBlock> blocks, QueryRun run, Backend& backend);
  /// Those of one head, in the trace's token numbers.
  const HostEntries& entries(std::size_t h) const { return *collected_.heads[h].host; }
  /// Whether they are all tokens with unit weights, so that the exact pass is the answer.
  bool complete(std::size_t h) const { return collected_.heads[h].complete; }
  /// Answers the run's queries of one head, unless `shared` has, and measures the answers.
  void answer(HeadBlock& block, QueryRun run, std::size_t h, const Shared* shared, Backend& backend);
  void observe();

  /// Counts and bytes, after the last block.
  void finish();

 private:
  struct Collected {  // of a run
    struct OfHead {
      BlockPart part;
      EntryTables tables;  // in the trace's token numbers
      std::optional<HostEntries> host;
      bool complete = false;
      std::vector<Buffer<const float>> weights;  // what the cache observes
    };
    std::vector<QueryBlock> locals;
    std::vector<EntryTables> entries;  // in the cache's token numbers
    std::vector<OfHead> heads;
  };

  void append(Index end, Backend& backend);
  /// Checks the entries that the cache returned for a head, and reads them in the trace's token numbers.
  void read_entries(std::size_t h, Index queries, Backend& backend);
  Answer attend(const HostState& fixed, std::size_t h, Backend& backend);
  RecallRange recall_range(std::size_t h) const;

  std::unique_ptr<LayerCache> cache_;
  Options options_;
  std::span<const Head> heads_;
  std::vector<CellResult*> results_;
  std::vector<Measurements> measurements_;  ///< by head
  Collected collected_;
  Index answered_ = 0;  ///< queries of the block
  Index next_;          ///< trace number of the first token that the cache has not seen
};

}  // namespace kvbench
