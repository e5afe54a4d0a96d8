// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/merging_cache.hpp>

#include <algorithm>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

template <class T>
std::vector<T> part(const std::vector<T>& all, Index first, Index count) {
  return {all.begin() + first, all.begin() + first + count};
}

MergedEntries slice(const MergedEntries& all, Index first, Index count) {
  return {.keys = all.keys.slice(first, count),
          .values = all.values.slice(first, count),
          .ids = part(all.ids, first, count),
          .degrees = part(all.degrees, first, count)};
}

/// All entries except the sinks and the recent tokens.
MergedEntries middle_of(const MergedEntries& whole, const MergingParts& parts) {
  return slice(whole, parts.sinks, std::max<Index>(0, whole.size() - parts.sinks - parts.recent));
}

bool same_middle(const MergingParts& a, const MergingParts& b) { return a.sinks == b.sinks && a.recent == b.recent; }

MergedEntries tokens_of(const HeadPrompt& head) {
  const Index n = head.tokens();
  return {.keys = head.keys,
          .values = head.values,
          .ids = token_range(0, n),
          .degrees = std::vector<float>(static_cast<std::size_t>(n), 1)};
}

}  // namespace

void fields(ParamVisitor& visitor, MergingParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0},
                  "first tokens that are never merged; at most a quarter of the budget");
  visitor.integer("recent", params.recent, {.min = 0}, "last tokens, which are not merged; at most half of the budget");
  visitor.integer("slack", params.slack, {.min = 0},
                  "entries freed at once when decoding exceeds the budget; at most half of the middle");
  visitor.real("ratio", params.schedule.ratio, {.min = 0.01, .max = 0.5},
               "share of the middle that the first round removes");
  visitor.real("decay", params.schedule.decay, {.min = 0, .max = 0.5}, "decrease of the share per round");
  visitor.real("floor", params.schedule.floor, {.min = 0.01, .max = 0.5}, "lower limit of the share");
}

void fields(ParamVisitor& visitor, MergeRule::Order& order) {
  visitor.choice("order", order, {"place", "concat"},
                 "order of entries after a round: groups at the place of their B token, or the rest of A before B");
}

MergingParts merging_parts(const MergingParams& params, Index budget) {
  MergingParts parts{.sinks = std::min(params.sinks, budget / 4), .recent = std::min(params.recent, budget / 2)};
  parts.slack = std::min(params.slack, (budget - parts.sinks - parts.recent) / 2);
  return parts;
}

MergeRounds& ContextRounds::rounds(const MergingParts& parts) {
  if (!rounds_ || !same_middle(parts_, parts)) {
    parts_ = parts;
    rounds_.emplace(rule_, params_.schedule, middle_of(tokens_of(head_), parts), 0, backend_);
  }
  return *rounds_;
}

MergingCache::MergingCache(ContextRounds& context, Index budget)
    : backend_(context.backend()),
      rule_(context.rule()),
      schedule_(context.params().schedule),
      parts_(merging_parts(context.params(), budget)),
      budget_(budget),
      tokens_(context.head().tokens()) {
  fixed_.sinks = std::min(parts_.sinks, tokens_);
  fixed_.recent = std::min(parts_.recent, tokens_ - fixed_.sinks);
  const MergedEntries whole = tokens_of(context.head());
  if (tokens_ > budget) {
    hold(whole, context.rounds(parts_).last_round(budget - parts_.sinks - parts_.recent));
  } else {
    hold_all(whole);
  }
}

void MergingCache::append(const TokenBlock& tokens) {
  const Index count = tokens.size(), before = size();
  reserve(before + count);
  copy_rows(tokens.keys, keys_.slice(before, count), backend_);
  copy_rows(tokens.values, values_.slice(before, count), backend_);
  for (Index i = 0; i < count; ++i) ids_.push_back(static_cast<TokenId>(tokens_++));
  degrees_.resize(ids_.size(), 1);
  if (size() > budget_) {
    const MergedEntries whole{.keys = keys_, .values = values_, .ids = ids_, .degrees = degrees_};
    MergeRounds rounds(rule_, schedule_, middle_of(whole, parts_), rounds_, backend_);
    hold(whole, rounds.last_round(budget_ - parts_.slack - parts_.sinks - parts_.recent));
  }
}

void MergingCache::hold_all(const MergedEntries& whole) {
  const auto own = [&](const Buffer<const float>& rows) {
    const auto copy = backend_.allocate<float>(rows.rows(), rows.cols());
    copy_rows(rows, copy, backend_);
    return copy;
  };
  keys_ = own(whole.keys), values_ = own(whole.values);
  ids_ = whole.ids, degrees_ = whole.degrees;
  refresh_merged();
}

/// Holds the sinks of `whole`, the groups of the round, and the recent tokens of `whole`.
void MergingCache::hold(const MergedEntries& whole, const MergeRounds::LastRound& last) {
  const Index sinks = parts_.sinks, recent = parts_.recent, from = whole.size() - recent, middle = last.groups.size();
  const auto around = [&](const Buffer<const float>& rows, const Buffer<const float>& merging) {
    const auto out = backend_.allocate<float>(sinks + middle + recent, rows.cols());
    copy_rows(rows.slice(0, sinks), out.slice(0, sinks), backend_);
    merge_rows(last.groups, merging, out.slice(sinks, middle), backend_);
    copy_rows(rows.slice(from, recent), out.slice(sinks + middle, recent), backend_);
    return out;
  };
  const auto joined = [&]<class T>(const std::vector<T>& all, const std::vector<T>& merged) {
    std::vector<T> out = part(all, 0, sinks);
    out.insert(out.end(), merged.begin(), merged.end());
    out.insert(out.end(), all.begin() + from, all.begin() + from + recent);
    return out;
  };
  keys_ = around(whole.keys, last.entries.keys), values_ = around(whole.values, last.entries.values);
  ids_ = joined(whole.ids, last.groups.ids), degrees_ = joined(whole.degrees, last.groups.degrees);
  rounds_ = last.rounds;
  refresh_merged();
}

/// Reserves memory for `rows` entries. It grows by doubling, as the budget may be far above the number of tokens.
void MergingCache::reserve(Index rows) {
  if (rows <= keys_.rows()) return;
  const Index capacity = std::max(rows, std::min(2 * rows, budget_ + 1));
  const auto keys = backend_.allocate<float>(capacity, keys_.cols());
  const auto values = backend_.allocate<float>(capacity, values_.cols());
  copy_rows(keys_.slice(0, size()), keys.slice(0, size()), backend_);
  copy_rows(values_.slice(0, size()), values.slice(0, size()), backend_);
  keys_ = keys, values_ = values;
}

void MergingCache::refresh_merged() {
  merged_ = {};
  std::vector<std::int32_t> slots;
  std::vector<TokenId> ids;
  std::vector<float> degrees;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (degrees_[i] == 1) continue;
    slots.push_back(static_cast<std::int32_t>(i));
    ids.push_back(ids_[i]);
    degrees.push_back(degrees_[i]);
  }
  if (slots.empty()) return;
  const auto width = static_cast<Index>(slots.size());
  const Buffer<const std::int32_t> rows = backend_.adopt(std::move(slots), width);
  merged_.ids = backend_.adopt(std::move(ids), 1, width);
  merged_.weight_num = backend_.adopt(std::move(degrees), 1, width);
  merged_.weight_den = merged_.weight_num;
  merged_.own_keys = gathered(keys_, rows, backend_);
  merged_.own_values = gathered(values_, rows, backend_);
}

EntryTables MergingCache::entries(const QueryBlock&) const {
  EntryTables tables;
  if (merged_.ids.present()) tables.push_back(merged_);
  // An entry of one token refers to that token, so that its answer is exact.
  std::vector<TokenId> single;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (degrees_[i] == 1) single.push_back(ids_[i]);
  }
  const auto width = static_cast<Index>(single.size());
  if (width > 0) tables.push_back({.ids = backend_.adopt(std::move(single), 1, width)});
  return tables;
}

Footprint MergingCache::footprint() const {
  Footprint arrays = kept_footprint(size(), keys_.cols(), values_.cols());
  arrays.push_back({.name = "degrees", .element = Element::i32, .rows = size(), .cols = 1, .content = Content::meta});
  return arrays;
}

Properties merging_properties() {
  return {.key_shift = Property::no("cosines change when all keys move"),
          .nested_budgets = Property::no("a smaller budget merges more, and other tokens represent the groups"),
          .weight_sum = WeightSum::context};
}

MakeCache prepare_merging(const HeadPrompt& head, const MergeRule& rule, const MergingParams& params,
                          Backend& backend) {
  return [context = std::make_shared<ContextRounds>(head, rule, params, backend)](
             Index budget, std::uint32_t /*seed*/) { return std::make_unique<MergingCache>(*context, budget); };
}

}  // namespace kvbench::methods
