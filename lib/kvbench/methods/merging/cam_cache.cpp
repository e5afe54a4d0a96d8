// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/cam_cache.hpp>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
CamCache::CamCache(const HeadPrompt& head, const CamRule& rule, const CamPrompt& prompt, const Draws& draws,
                   std::vector<Note> notes, Backend& backend)
    : backend_(backend),
      rule_(rule),
      draws_(draws),
      notes_(std::move(notes)),
      d_(head.keys.cols()),
      dv_(head.values.cols()),
      rows_(rule.rows(head.group)),
      attention_(prompt.gathered),
      tokens_(head.tokens()),
      begin_(std::max(rule.start, tokens_ - rule.recent)),
      base_(begin_),
      capacity_(2 * rule.recent + 64),
      values_(backend.allocate<float>(rows_ * capacity_, dv_)),
      slots_(window()) {
  for (Index row = 0; row < rows_ && window() > 0; ++row) take_prompt(head, prompt, row);
}

void CamCache::take_prompt(const HeadPrompt& head, const CamPrompt& prompt, Index row) {
  std::vector<std::int32_t> merged;
  if (!prompt.chances.empty()) {
    const std::vector<double>& chances = prompt.chances[static_cast<std::size_t>(row)];
    for (std::size_t k = 0; k < chances.size(); ++k) {
      const Index i = rule_.start + static_cast<Index>(k);
      if (drawn(row, i, chances[k])) merged.push_back(static_cast<std::int32_t>(i));
    }
  }
  Buffer<const float> values = head.values;
  if (!merged.empty()) {
    const auto changed = backend_.allocate<float>(tokens_, dv_);
    copy_rows(head.values, changed, backend_);
    const Index count = std::ssize(merged);
    backend_.run(kernels::SpreadRows<Buffer>{.sources = backend_.adopt(std::move(merged), count),
                                             .count = rule_.receivers(),
                                             .factor = share(),
                                             .rows = changed});
    values = changed;
  }
  copy_rows(values.slice(begin_, window()), stored(row), backend_);
}

void CamCache::make_room() {
  if (tokens_ - base_ < capacity_) return;
  const auto fresh = backend_.allocate<float>(rows_ * capacity_, dv_);
  for (Index row = 0; row < rows_; ++row) {
    copy_rows(stored(row).slice(begin_ - base_, window()), fresh.slice(row * capacity_, window()), backend_);
  }
  values_ = fresh;
  base_ = begin_;
}

void CamCache::append(const TokenBlock& tokens) {
  slide();  // in case observe() was not called for the last token
  const Index token = tokens_;
  if (token >= rule_.start) make_room();
  ++tokens_;
  for (Index row = 0; row < rows_ && token >= rule_.start; ++row) {
    copy_rows(tokens.values, stored(row).slice(token - base_, 1), backend_);
  }
  for (auto& of_head : attention_) of_head.push_back(0);
  if (rule_.form == CamForm::eval) merge(rule_.merged_at(token));
  if (rule_.form == CamForm::decode) slide();
  slots_ = window();
}

EntryTables CamCache::entries(const QueryBlock&) const {
  EntryTables tables;
  if (sinks() > 0) tables.push_back({.ids = backend_.adopt(token_range(0, sinks()), 1, sinks())});
  if (window() == 0) return tables;
  const auto values = backend_.allocate<float>(rows_ * window(), dv_);
  std::vector<TokenId> ids;
  for (Index row = 0; row < rows_; ++row) {
    const std::vector<TokenId> of_row = token_range(begin_, window());
    ids.insert(ids.end(), of_row.begin(), of_row.end());
    copy_rows(stored(row).slice(begin_ - base_, window()), values.slice(row * window(), window()), backend_);
  }
  tables.push_back({.per_head = rule_.group.per_head(),
                    .ids = backend_.adopt(std::move(ids), rows_, window()),
                    .own_values = values});
  return tables;
}

void CamCache::observe(const QueryBlock&, const EntryTables&, std::span<const Buffer<const float>> weights) {
  std::size_t table = 0;
  for (const auto& [first, count] : {std::pair(Index{0}, sinks()), std::pair(begin_, window())}) {
    if (count == 0) continue;
    const std::vector<float> shares = backend_.read(weights[table++]);
    for (std::size_t g = 0; g < attention_.size(); ++g) {
      for (Index k = 0; k < count; ++k) {
        double& sum = attention_[g][static_cast<std::size_t>(first + k)];
        const double share = shares[g * static_cast<std::size_t>(count) + static_cast<std::size_t>(k)];
        sum = rule_.form == CamForm::decode ? share : sum + share;
      }
    }
  }
  if (rule_.form != CamForm::eval) merge(rule_.merged_at(tokens_ - 1));
  slide();
}

void CamCache::merge(Index i) {
  if (i < rule_.start || rule_.receivers() < 1) return;
  for (Index row = 0; row < rows_; ++row) {
    if (!drawn(row, i, merge_chance(rule_, attention_, row, i))) continue;
    backend_.run(kernels::SpreadRows<Buffer>{
        .sources = backend_.adopt(std::vector<std::int32_t>{static_cast<std::int32_t>(i - base_)}, 1),
        .count = rule_.receivers(),
        .factor = share(),
        .rows = stored(row),
    });
  }
}

Footprint CamCache::footprint() const {
  Footprint arrays = {
      {.name = "keys", .rows = sinks() + slots_, .cols = d_},
      {.name = "first values", .rows = sinks(), .cols = dv_, .content = Content::values},
      {.name = "window values", .rows = rows_ * slots_, .cols = dv_, .content = Content::values},
  };
  if (rule_.form == CamForm::decode) return arrays;
  // Sums and means can be stored reduced over the query group; a maximum of sums cannot.
  const bool by_head = rule_.group.per_head() || rule_.group.reduce == kernels::Reduction::max;
  const Index counted = slots_ + (rule_.form == CamForm::eval ? sinks() : 0);
  arrays.push_back({.name = "attention sums",
                    .element = Element::f32,
                    .rows = counted * (by_head ? std::ssize(attention_) : 1),
                    .cols = 1,
                    .read = Read::never,
                    .content = Content::meta});
  return arrays;
}

}  // namespace kvbench::methods
