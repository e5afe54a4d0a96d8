// SPDX-License-Identifier: Apache-2.0
// The caches of the kv heads of a work item while a model decodes, and all of their tokens.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <kvbench/loop/layer_arrays.hpp>
#include <kvbench/methods/stages/growing_rows.hpp>
#include <kvbench/replay/answer/work_item.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::loop {

class Stream {
 public:
  /// `caches` hold the context of so many tokens, and were made on `backend` for a budget in tokens.
  Stream(const replay::WorkItem& item, bool observes, Index context, replay::OpenCaches caches,
         std::unique_ptr<Backend> backend, Index budget);
  ~Stream();

  /// Appends the last `count` of the tokens of `arrays`, and answers the last `count` of its queries. `outputs`
  /// [query_heads, count, dv] of the layer, of which those of these heads are written. The heads of a layer may write
  /// at the same time.
  void answer(const LayerArrays& arrays, Index count, std::span<float> outputs);

  /// Adds what the caches hold.
  void add_bytes(methods::Element kv, replay::Bytes& sum) const;

  Index budget() const { return budget_; }
  Index kv_heads() const { return std::ssize(kv_heads_); }
  /// Entries that answered a query, mean over queries and query heads: the sum over the kv heads.
  double kept() const;

 private:
  Index append(Index count);
  methods::QueryBlock block(const LayerArrays& arrays, std::size_t h, Index begin, Index count, Index queries) const;
  std::vector<float> attend(std::size_t h, const methods::QueryBlock& queries, const methods::EntryTables& tables);

  std::unique_ptr<Backend> backend_;  ///< first: everything else refers to it
  std::vector<Index> kv_heads_;
  Session session_;
  Index group_ = 1;
  float scale_ = 1;
  std::vector<methods::GrowingRows> keys_, values_;  ///< by head, of all tokens
  std::vector<double> read_;                         ///< by head: entries that the last query read
  Index budget_;
  double used_ = 0, queries_ = 0;  ///< entries that answered, mean over query heads; queries of all kv heads
};

}  // namespace kvbench::loop
