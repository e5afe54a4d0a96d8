// SPDX-License-Identifier: Apache-2.0
// One method at one budget and seed on the heads of a unit, from compression to the last query.
#pragma once

#include <map>
#include <memory>

#include <kvbench/replay/cluster_cache.hpp>
#include <kvbench/replay/metrics.hpp>
#include <kvbench/replay/selection.hpp>

namespace kvbench {

/// A run of consecutive queries of a block, in both token numberings (see TokenMap).
struct BlockPart {
  QueryBlock global, local;
};

/// What all cells of a unit share of one head: the exact pass over the block at hand, and the state of the tokens that the
/// harness itself keeps exactly (the tail after the context, protected ends).
class SharedBlock {
 public:
  /// `fixed` = trace numbers of the tokens that the harness keeps.
  SharedBlock(const Head& head, Index begin, Index count, const std::vector<TokenId>& fixed, Backend& backend);

  ExactBlock exact;
  std::vector<float> fixed_max, fixed_den, fixed_num;  ///< AttentionState rows of the block

  const BlockPart& part(Index begin, Index count, Backend& backend);  ///< computed once for all cells

 private:
  Index group_;
  bool identity_;  ///< both numberings are the same
  QueryBlock local_;
  std::map<std::pair<Index, Index>, BlockPart> parts_;
};

/// Runs one cache over the blocks of queries in order and measures it.
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

  /// `results` are those of the unit's heads, in the order of `heads`; both outlive this object.
  CellRun(std::unique_ptr<LayerCache> cache, Options options, std::span<const Head> heads, std::vector<CellResult*> results);

  /// Answers the queries of a block (one SharedBlock a head), appending the decoded tokens up to each.
  void answer(std::span<SharedBlock> blocks, Backend& backend);

  /// Counts and bytes, after the last block.
  void finish();

 private:
  struct Answered {  // by head: the state after the entries, and after the plain entries alone
    std::vector<float> max, den, num, plain_max, plain_den, plain_num;
  };
  struct Tally {           // by head
    double entries = 0;    // that answered, over query rows
    double rows_read = 0;  // of arrays read with the entry, over queries
    double query_rows = 0;
    std::vector<SquaredError> squares;            // by query head
    std::vector<std::vector<ClusterStep>> steps;  // by query head, in query order; none where entries have no groups
  };

  void answer_run(std::span<SharedBlock> blocks, Index begin, Index count, Backend& backend);
  Answered attend_head(SharedBlock& block, Index begin, const BlockPart& part, std::size_t h, const EntryTables& tables,
                       const HostEntries& entries, std::vector<Buffer<float>>* logits, Backend& backend);
  void measure(SharedBlock& block, Index begin, Index count, std::size_t h, const EntryTables& tables,
               const HostEntries& entries, const Answered& answered, Backend& backend);
  RecallRange recall_range(std::size_t h) const;
  void keep_entries(std::size_t h, Index first_query, const EntryTables& tables, Backend& backend);

  std::unique_ptr<LayerCache> cache_;
  Options options_;
  std::span<const Head> heads_;
  std::vector<CellResult*> results_;
  std::vector<Tally> tallies_;
  Index next_;  ///< trace number of the first token that the cache has not seen
};

}  // namespace kvbench
