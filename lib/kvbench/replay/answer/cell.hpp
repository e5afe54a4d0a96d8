// SPDX-License-Identifier: Apache-2.0
// One method at one budget and seed on the heads of a unit, from compression to the last query.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include <kvbench/replay/measure/cluster_cache.hpp>
#include <kvbench/replay/measure/metrics.hpp>
#include <kvbench/replay/answer/shared_entries.hpp>

namespace kvbench {

/// A run of consecutive queries of a block, in both token numberings (see TokenMap).
struct BlockPart {
  QueryBlock global, local;
};

/// Queries [begin, end) of a block, which one state of a cache answers.
struct QueryRun {
  Index begin = 0, end = 0;
  Index size() const { return end - begin; }
  friend auto operator<=>(const QueryRun&, const QueryRun&) = default;
};

/// What all cells of a unit share of one head: the exact pass over the block at hand, and the state of the tokens that the
/// harness itself keeps exactly (the tail after the context, protected ends).
class SharedBlock {
 public:
  /// `fixed` = trace numbers of the tokens that the harness keeps. `head` outlives this.
  SharedBlock(const Head& head, Index begin, Index count, const std::vector<TokenId>& fixed, Backend& backend);

  ExactBlock exact;

  const Head& head() const { return *head_; }
  const BlockPart& part(QueryRun run, Backend& backend);  ///< computed once for all cells
  HostState fixed(QueryRun run) const;                    ///< state of the run's rows over the tokens that the harness keeps
  HostState whole(QueryRun run) const;                    ///< over all tokens: the exact pass

 private:
  std::vector<float> rows(const std::vector<float>& all, QueryRun run) const;

  const Head* head_;
  QueryBlock local_;
  HostState fixed_;  ///< rows of the block
  std::map<QueryRun, BlockPart> parts_;
};

/// Runs one cache over the blocks of queries in order and measures it. A block: start(), then as long as advance() finds
/// queries, collect(), answer() for each head, observe().
class CellRun {
 public:
  struct Options {
    bool decode = false;  ///< tokens after the context are appended to the cache, else the harness holds them
    bool observes = false;
    bool recall_sinks = false;
    bool standalone = false;  ///< logits are recomputed; a method that selects pays for the scan of its own scores
    bool selects = false;
    bool keep_raw = false;
    Element kv_element = Element::f16;
  };
  /// An answer that was computed together with others', and this cell's share of the time.
  struct Shared {
    SetAnswer answer;
    double seconds = 0;
  };

  /// `results` are those of the unit's heads, in the order of `heads`; both outlive this object.
  CellRun(std::unique_ptr<LayerCache> cache, Options options, std::span<const Head> heads, std::vector<CellResult*> results);

  /// Whether its entries may be attended to together with another cell's.
  bool shares() const { return !options_.standalone && !options_.observes; }

  void start(std::span<SharedBlock> blocks);
  /// Appends decoded tokens until the cache answers queries of the block; empty after the last of them.
  QueryRun advance(std::span<SharedBlock> blocks, Backend& backend);
  /// Asks the cache for the entries that answer the run. `memos`: by head, or none.
  void collect(std::span<SharedBlock> blocks, QueryRun run, std::span<const std::shared_ptr<BlockMemo>> memos,
               Backend& backend);
  /// Those of one head, in the trace's token numbers.
  const HostEntries& entries(std::size_t h) const { return *collected_.heads[h].host; }
  /// Whether they are all tokens with unit weights, so that the exact pass has answered already.
  bool complete(std::size_t h) const { return collected_.heads[h].complete; }
  /// Answers the run's queries of one head, unless that is done, and measures the answers.
  void answer(SharedBlock& block, QueryRun run, std::size_t h, const Shared* shared, Backend& backend);
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
  struct Tally {           // by head
    double entries = 0;    // that answered, over query rows
    double rows_read = 0;  // of arrays read with the entry, over queries
    double query_rows = 0;
    std::vector<SquaredError> squares;            // by query head
    std::vector<std::vector<ClusterStep>> steps;  // by query head, in query order; none where entries have no groups
  };

  void append(Index end, Backend& backend);
  /// Checks the entries that the cache returned for a head and reads them, unless another budget has.
  void read_entries(std::size_t h, Index queries, TableStore& store, Backend& backend);
  SetAnswer attend(const HostState& fixed, std::size_t h, Backend& backend);
  void measure(SharedBlock& block, QueryRun run, std::size_t h, const SetAnswer& answer, Backend& backend);
  RecallRange recall_range(std::size_t h) const;
  void keep_entries(std::size_t h, Index first_query, const EntryTables& tables, Backend& backend);

  std::unique_ptr<LayerCache> cache_;
  Options options_;
  std::span<const Head> heads_;
  std::vector<CellResult*> results_;
  std::vector<Tally> tallies_;
  Collected collected_;
  Index answered_ = 0;  ///< queries of the block
  Index next_;          ///< trace number of the first token that the cache has not seen
};

}  // namespace kvbench
