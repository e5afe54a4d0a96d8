// SPDX-License-Identifier: Apache-2.0
// A cache around that of a method: what it does not override is that of the method.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

class WrappedCache : public LayerCache {
 public:
  /// `notes` follow those of the cache.
  WrappedCache(std::unique_ptr<LayerCache> cache, std::vector<Note> notes)
      : cache_(std::move(cache)), notes_(std::move(notes)) {}

  void observe(std::span<const QueryBlock> queries, std::span<const EntryTables> entries,
               std::span<const std::vector<Buffer<const float>>> weights) override {
    cache_->observe(queries, entries, weights);
  }
  std::vector<Protected> protected_tokens() const override { return cache_->protected_tokens(); }
  TokenRange retrievable() const override { return cache_->retrievable(); }
  std::vector<Note> notes() const override {
    std::vector<Note> all = cache_->notes();
    std::ranges::copy(notes_, std::back_inserter(all));
    return all;
  }

 protected:
  LayerCache& cache() { return *cache_; }
  const LayerCache& cache() const { return *cache_; }

  /// The first `count` tokens of each head's block.
  static std::vector<TokenBlock> first(std::span<const TokenBlock> tokens, Index count) {
    std::vector<TokenBlock> out;
    for (const TokenBlock& block : tokens)
      out.push_back({.first = block.first, .keys = block.keys.slice(0, count), .values = block.values.slice(0, count)});
    return out;
  }

 private:
  std::unique_ptr<LayerCache> cache_;
  std::vector<Note> notes_;
};

}  // namespace kvbench::methods
