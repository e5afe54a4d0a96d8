// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// Caches of single kv heads as a layer.
class HeadCaches : public LayerCache {
 public:
  void add(std::unique_ptr<CompressedCache> cache) { heads_.push_back(std::move(cache)); }

  /// Several heads must all take the same number of tokens.
  Index append(std::span<const TokenBlock> tokens) override {
    Index taken = 0;
    for (std::size_t h = 0; h < heads_.size(); ++h) taken = heads_[h]->append(tokens[h]);
    return taken;
  }
  std::vector<EntryTables> entries(std::span<const QueryBlock> queries) const override {
    std::vector<EntryTables> tables;
    for (std::size_t h = 0; h < heads_.size(); ++h) tables.push_back(heads_[h]->entries(queries[h]));
    return tables;
  }
  void observe(std::span<const QueryBlock> queries, std::span<const EntryTables> entries,
               std::span<const std::vector<Buffer<const float>>> weights) override {
    for (std::size_t h = 0; h < heads_.size(); ++h) heads_[h]->observe(queries[h], entries[h], weights[h]);
  }
  std::vector<Footprint> footprint() const override {
    std::vector<Footprint> arrays;
    for (const auto& head : heads_) arrays.push_back(head->footprint());
    return arrays;
  }
  std::vector<Protected> protected_tokens() const override {
    std::vector<Protected> tokens;
    for (const auto& head : heads_) tokens.push_back(head->protected_tokens());
    return tokens;
  }

  std::vector<Note> notes() const override {
    std::vector<Note> all;
    for (const auto& head : heads_) {
      const std::vector<Note> notes = head->notes();
      all.insert(all.end(), notes.begin(), notes.end());
    }
    return all;
  }

 private:
  std::vector<std::unique_ptr<CompressedCache>> heads_;
};

}  // namespace kvbench
