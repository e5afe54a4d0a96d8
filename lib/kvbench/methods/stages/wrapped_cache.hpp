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

class WrappedCache : public CompressedCache {
 public:
  /// `notes` follow those of the cache.
  WrappedCache(std::unique_ptr<CompressedCache> cache, std::vector<Note> notes)
      : cache_(std::move(cache)), notes_(std::move(notes)) {}

  Index takes(const TokenBlock& tokens) override { return cache_->takes(tokens); }
  void append(const TokenBlock& tokens) override { cache_->append(tokens); }
  void announce(const QueryBlock& queries) override { cache_->announce(queries); }
  EntryTables entries(const QueryBlock& queries) const override { return cache_->entries(queries); }
  void observe(const QueryBlock& queries, const EntryTables& entries,
               std::span<const Buffer<const float>> weights) override {
    cache_->observe(queries, entries, weights);
  }
  Footprint footprint() const override { return cache_->footprint(); }
  Protected protected_tokens() const override { return cache_->protected_tokens(); }
  TokenRange retrievable() const override { return cache_->retrievable(); }
  std::vector<Note> notes() const override {
    std::vector<Note> all = cache_->notes();
    std::ranges::copy(notes_, std::back_inserter(all));
    return all;
  }

 protected:
  CompressedCache& cache() { return *cache_; }
  const CompressedCache& cache() const { return *cache_; }

 private:
  std::unique_ptr<CompressedCache> cache_;
  std::vector<Note> notes_;
};

}  // namespace kvbench::methods
