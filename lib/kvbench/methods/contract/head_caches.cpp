// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/head_caches.hpp>

#include <stdexcept>
#include <utility>

namespace kvbench::methods {
namespace {

class HeadCaches : public LayerCache {
 public:
  explicit HeadCaches(std::vector<std::unique_ptr<CompressedCache>> heads) : heads_(std::move(heads)) {}

  Index append(std::span<const TokenBlock> tokens) override {
    const Index taken = heads_.front()->append(tokens.front());
    for (std::size_t h = 1; h < heads_.size(); ++h) {
      if (heads_[h]->append(tokens[h]) != taken)
        throw std::logic_error("append() took different numbers of tokens on the kv heads of a layer");
    }
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
  TokenRange retrievable() const override { return heads_.front()->retrievable(); }
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

class SingleHead : public CompressedCache {
 public:
  explicit SingleHead(std::unique_ptr<LayerCache> layer) : layer_(std::move(layer)) {}

  Index append(const TokenBlock& tokens) override { return layer_->append({&tokens, 1}); }
  EntryTables entries(const QueryBlock& queries) const override { return layer_->entries({&queries, 1}).front(); }
  void observe(const QueryBlock& queries, const EntryTables& entries,
               std::span<const Buffer<const float>> weights) override {
    const std::vector<Buffer<const float>> of_head(weights.begin(), weights.end());
    layer_->observe({&queries, 1}, {&entries, 1}, {&of_head, 1});
  }
  Footprint footprint() const override { return layer_->footprint().front(); }
  Protected protected_tokens() const override { return layer_->protected_tokens().front(); }
  TokenRange retrievable() const override { return layer_->retrievable(); }
  std::vector<Note> notes() const override { return layer_->notes(); }

 private:
  std::unique_ptr<LayerCache> layer_;
};

}  // namespace

std::unique_ptr<LayerCache> layer_of(std::vector<std::unique_ptr<CompressedCache>> heads) {
  return std::make_unique<HeadCaches>(std::move(heads));
}

MakeLayerCache each_head(std::vector<MakeCache> heads) {
  return [heads = std::move(heads)](Index budget, std::uint32_t seed) {
    std::vector<std::unique_ptr<CompressedCache>> caches;
    for (const MakeCache& make : heads) caches.push_back(make(budget, seed));
    return layer_of(std::move(caches));
  };
}

MakeCache single_head(MakeLayerCache layer) {
  return [layer = std::move(layer)](Index budget, std::uint32_t seed) {
    return std::make_unique<SingleHead>(layer(budget, seed));
  };
}

}  // namespace kvbench::methods
