// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/kept_cache.hpp>

#include <algorithm>
#include <utility>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

Footprint kept_footprint(Index rows, Index d, Index dv) {
  return {{.name = "keys", .rows = rows, .cols = d},
          {.name = "values", .rows = rows, .cols = dv, .content = Content::values}};
}

Footprint retrieved_footprint(Index rows, Index d, Index dv, const std::string& of) {
  const auto array = [&](const char* name, Index cols, Content content) {
    return FootprintArray{.name = of + name,
                          .rows = rows,
                          .cols = cols,
                          .tier = Tier::slow,
                          .read = Read::with_entry,
                          .content = content};
  };
  return {array("keys", d, Content::keys), array("values", dv, Content::values)};
}

FootprintArray chosen_tokens(Index rows) {
  return {.name = "chosen tokens",
          .element = Element::i32,
          .rows = rows,
          .cols = 1,
          .read = Read::with_entry,
          .content = Content::meta};
}

void add_resident(Index first, Index count, Backend& backend, EntryTables& tables) {
  if (count > 0)
    tables.push_back({.place = Place::resident, .ids = backend.adopt(token_range(first, count), 1, count)});
}

KeptCache::KeptCache(Backend& backend, const HeadPrompt& head, KeptTokens kept)
    : backend_(backend),
      d_(head.keys.cols()),
      dv_(head.values.cols()),
      context_tokens_(head.tokens()),
      window_(head.window),
      ragged_(kept.ragged),
      fixed_(kept.fixed),
      notes_(std::move(kept.notes)) {
  fixed_.decoded = true;
  const Index width = static_cast<Index>(kept.ids.size()) / kept.rows;
  held_ = std::ranges::count_if(kept.ids, [](TokenId id) { return id >= 0; });
  context_.per_head = kept.per_head;
  context_.ids = backend.adopt(std::move(kept.ids), kept.rows, width);
  if (!kept.weight.empty()) {
    const Buffer<float> weight = backend.adopt(std::move(kept.weight), kept.rows, width);
    context_.weight_num = weight;
    context_.weight_den = weight;
  }
  if (!kept.weight_den.empty()) {
    context_.weight_den = backend.adopt(std::move(kept.weight_den), kept.rows, width);
    weights_ = 2;
  }
}

EntryTables KeptCache::entries(const QueryBlock&) const {
  EntryTables tables = {context_};
  if (appended_ > 0) tables.push_back({.ids = backend_.adopt(token_range(context_tokens_, appended_), 1, appended_)});
  return tables;
}

Footprint KeptCache::footprint() const {
  // With a selection per query head, every query head stores the decoded tokens.
  const Index selections = context_.per_head ? context_.ids.rows() : 1, rows = held_ + appended_ * selections;
  Footprint arrays = kept_footprint(window_ > 0 ? std::min(rows, window_ * selections) : rows, d_, dv_);
  if (context_.weight_num.present()) {
    arrays.push_back(
        {.name = "weights", .element = Element::f32, .rows = held_, .cols = weights_, .content = Content::meta});
  }
  if (ragged_)
    arrays.push_back({.name = "length", .element = Element::i32, .rows = 1, .cols = 1, .content = Content::meta});
  return arrays;
}

}  // namespace kvbench::methods
