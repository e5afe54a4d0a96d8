// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/rounded_cache.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/stored_rows.hpp>
#include <kvbench/methods/stages/wrapped_cache.hpp>

namespace kvbench::methods {
namespace {

/// The keys or the values of all tokens of a head, those that are encoded as attention reads them. `codec` null: no
/// rows.
class TierRows {
 public:
  TierRows(Buffer<const float> prompt, std::shared_ptr<const Codec> codec, Backend& backend)
      : backend_(&backend), codec_(std::move(codec)), prompt_(prompt.rows()), rows_(backend, std::move(prompt)) {}

  /// Rows that go on from these and leave them as they are.
  TierRows branch() const {
    TierRows copy = *this;
    copy.rows_ = GrowingRows(*backend_, rows_.rows());
    return copy;
  }

  const Codec* codec() const { return codec_.get(); }
  Buffer<const float> rows() const { return codec_ ? rows_.rows() : Buffer<const float>(); }
  Index misfits() const { return misfits_; }
  Index waiting(TokenRange tier) const { return tier.count - encoded_; }
  Index run(TokenRange tier, Index most) const { return run_of(codec_.get(), context(tier), tier.count, most); }

  void add(const Buffer<const float>& exact) {
    if (!codec_) return;
    codec_->append(rows_.rows().rows(), exact);
    copy_rows(exact, rows_.add(exact.rows()), *backend_);
  }

  /// Adds what the codec holds beside its rows.
  void add_extras_to(Footprint& arrays, TokenRange tier, Content content, Tier where) const {
    if (codec_) add_extras(*codec_, token_range(tier.first, encoded_), content, where, arrays);
  }

  void encode(TokenRange tier) {
    const Index encoded = codec_ ? codec_->encoded(context(tier), tier.count) : 0;
    if (encoded <= encoded_) return;
    const Index begin = tier.first + encoded_, count = encoded - encoded_;
    const Buffer<const float> exact = rows_.rows().slice(begin, count);
    const Buffer<const float> decoded = codec_->decoded_at(exact, token_range(begin, count), *backend_);
    misfits_ += count_misfits(decoded, token_range(0, count), norms2(exact, *backend_), *backend_);
    copy_rows(decoded, rows_.rewrite(begin, count), *backend_);
    encoded_ = encoded;
  }

 private:
  /// Tokens of the tier that came with the prompt.
  Index context(TokenRange tier) const { return std::clamp<Index>(prompt_ - tier.first, 0, tier.count); }

  Backend* backend_;
  std::shared_ptr<const Codec> codec_;
  Index prompt_;
  GrowingRows rows_;   ///< of all tokens so far
  Index encoded_ = 0;  ///< of the tier, the first ones
  Index misfits_ = 0;
};

struct TierHead {
  TierRows keys, values;
  Index shared_values = 0;  ///< channels of the keys that are the values; 0: none

  TierHead branch() const { return {keys.branch(), values.branch(), shared_values}; }
  void encode(TokenRange tier) { keys.encode(tier), values.encode(tier); }
};

/// Whether an array holds the keys or the values of the full cache.
bool in_tier(const FootprintArray& array) {
  return array.element == Element::kv && array.read == Read::with_entry && !array.meta();
}

Footprint stored_footprint(const Footprint& arrays, const TierHead& head, TokenRange tier) {
  Footprint out;
  Tier where = Tier::fast;
  for (const FootprintArray& array : arrays) {
    if (in_tier(array)) where = array.tier;
    const TierRows& rows = array.content == Content::keys ? head.keys : head.values;
    if (!in_tier(array) || rows.codec() == nullptr) {
      out.push_back(array);
      continue;
    }
    // Where a method has dropped tokens for good, the groups of a codec are those of all tokens.
    if (array.rows > tier.count) throw std::logic_error("an array of the full cache has more rows than tokens");
    Index waiting = std::min(rows.waiting(tier), array.rows);
    add_encoded(array, *rows.codec(), waiting, out);
  }
  head.keys.add_extras_to(out, tier, Content::keys, where);
  head.values.add_extras_to(out, tier, Content::values, where);
  return out;
}

class TierCache : public WrappedCache {
 public:
  TierCache(std::unique_ptr<CompressedCache> cache, TierHead head, Note note, Backend& backend)
      : WrappedCache(std::move(cache), {std::move(note)}), head_(std::move(head)), backend_(backend) {}

  Index takes(const TokenBlock& tokens) override {
    const TokenRange before = retrievable();
    const Index run = std::min(head_.keys.run(before, tokens.size()), head_.values.run(before, tokens.size()));
    return cache().takes(tokens.front(run));
  }
  void append(const TokenBlock& tokens) override {
    cache().append(tokens);
    head_.keys.add(tokens.keys);
    head_.values.add(tokens.values);
  }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables = cache().entries(queries);
    const TierHead& stored = encoded();
    const Buffer<const float> keys = stored.keys.rows();
    const Buffer<const float> values = stored.shared_values > 0 && keys.present()
                                           ? first_columns(keys, stored.shared_values, backend_)
                                           : stored.values.rows();
    for (EntryTable& table : tables) {
      // Entries that stand for several tokens lie beside the full cache.
      if (table.own_keys.present() || table.token_keys.present()) continue;
      table.token_keys = keys;
      table.token_values = values;
      table.rounded = true;
    }
    return tables;
  }

  Footprint footprint() const override { return stored_footprint(cache().footprint(), encoded(), retrievable()); }
  std::vector<Note> notes() const override {
    return with_misfits(WrappedCache::notes(), head_.keys.misfits() + head_.values.misfits());
  }

 private:
  /// Rows are encoded when they are first asked for: codecs of a layer need the tokens of all heads.
  const TierHead& encoded() const {
    head_.encode(retrievable());
    return head_;
  }

  mutable TierHead head_;
  Backend& backend_;
};

Note note_on(const CompressedCache& cache, const std::string& stores) {
  const Footprint arrays = cache.footprint();
  const auto tier = std::ranges::find_if(arrays, in_tier);
  if (tier == arrays.end()) throw std::logic_error("a method that retrieves does not state its full cache");
  return {.text = fmt::format("{}, stores the full cache in {} memory", stores,
                              tier->tier == Tier::slow ? "slow" : "fast")};
}

}  // namespace

MakeCaches rounded_tier(MakeCaches make, std::vector<HeadPrompt> heads,
                        std::function<std::vector<Codecs>(std::uint32_t seed)> codecs, std::string stores,
                        Backend& backend) {
  // Budgets share the rows of a seed; those of another seed are dropped.
  const auto prompts = std::make_shared<std::map<std::uint32_t, std::vector<TierHead>>>();
  return [=, &backend](Index budget, std::uint32_t seed) {
    Caches caches = make(budget, seed);
    if (!prompts->contains(seed)) prompts->clear();
    const std::vector<TierHead>& prompt = computed_once(*prompts, seed, [&] {
      const std::vector<Codecs> of_heads = codecs(seed);
      std::vector<TierHead> all;
      for (std::size_t h = 0; h < heads.size(); ++h) {
        all.push_back({TierRows(heads[h].keys, of_heads[h].keys, backend),
                       TierRows(heads[h].values, of_heads[h].values, backend),
                       heads[h].values_in_keys ? heads[h].values.cols() : 0});
        all.back().encode(caches[h]->retrievable());
      }
      return all;
    });
    for (std::size_t h = 0; h < caches.size(); ++h) {
      Note note = note_on(*caches[h], stores);
      caches[h] = std::make_unique<TierCache>(std::move(caches[h]), prompt[h].branch(), std::move(note), backend);
    }
    return caches;
  };
}

}  // namespace kvbench::methods
