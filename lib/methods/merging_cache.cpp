// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging_cache.hpp>

#include <algorithm>

#include <kvbench/methods/stages.hpp>

namespace kvbench {
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

class MergingPrepared : public Prepared {
 public:
  MergingPrepared(ContextLinks context, const MergingParams& params) : context_(std::move(context)), params_(params) {}
  std::unique_ptr<CompressedCache> make(Index budget, std::uint32_t /*seed*/) const override {
    return std::make_unique<MergingCache>(context_, params_, budget);
  }

 private:
  ContextLinks context_;
  MergingParams params_;
};

}  // namespace

void fields(ParamVisitor& visitor, MergingParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that are never merged; at most a quarter of the budget");
  visitor.integer("recent", params.recent, {.min = 0}, "last tokens that are not merged yet; at most half of the budget");
  visitor.integer("slack", params.slack, {.min = 0},
                  "entries freed at once when decoding overflows the budget; at most half of its middle");
  visitor.real("ratio", params.schedule.ratio, {.min = 0.01, .max = 0.5}, "share of the middle that the first round removes");
  visitor.real("decay", params.schedule.decay, {.min = 0, .max = 0.5}, "by which the share falls from round to round");
  visitor.real("floor", params.schedule.floor, {.min = 0.01, .max = 0.5}, "below which the share does not fall");
}

void fields(ParamVisitor& visitor, MergeRule::Order& order) {
  visitor.choice("order", order, {"place", "concat"},
                 "of the entries after a round: groups at the place of their B token, or what is left of A before B");
}

MergingParts merging_parts(const MergingParams& params, Index budget) {
  MergingParts parts{.sinks = std::min(params.sinks, budget / 4), .recent = std::min(params.recent, budget / 2)};
  parts.slack = std::min(params.slack, (budget - parts.sinks - parts.recent) / 2);
  return parts;
}

const std::vector<MergeLink>& ContextLinks::between(Index sinks, Index recent) const {
  const auto [found, inserted] = known_.try_emplace({sinks, recent});
  if (inserted) {
    const Index middle = std::max<Index>(0, head_.tokens() - sinks - recent);
    if (middle > 0) found->second = merge_links(rule_, head_.keys.slice(sinks, middle), backend_);
  }
  return found->second;
}

MergingCache::MergingCache(const ContextLinks& context, const MergingParams& params, Index budget)
    : backend_(context.backend()),
      rule_(context.rule()),
      schedule_(params.schedule),
      parts_(merging_parts(params, budget)),
      budget_(budget),
      tokens_(context.head().tokens()) {
  const HeadPrompt& head = context.head();
  fixed_.sinks = std::min(parts_.sinks, tokens_);
  fixed_.recent = std::min(parts_.recent, tokens_ - fixed_.sinks);
  const MergedEntries whole{.keys = head.keys,
                            .values = head.values,
                            .ids = token_range(0, tokens_),
                            .degrees = std::vector<float>(static_cast<std::size_t>(tokens_), 1)};
  if (tokens_ > budget) {
    compress(whole, budget, context.between(parts_.sinks, parts_.recent));
  } else {
    hold(whole, tokens_, {});
  }
}

Index MergingCache::takes(Index offered) const { return std::clamp<Index>(budget_ - size(), 1, offered); }

Index MergingCache::append(const TokenBlock& tokens) {
  const Index count = takes(tokens.size()), before = size();
  reserve(before + count);
  copy_rows(tokens.keys.slice(0, count), keys_.slice(before, count), backend_);
  copy_rows(tokens.values.slice(0, count), values_.slice(before, count), backend_);
  for (Index i = 0; i < count; ++i) ids_.push_back(static_cast<TokenId>(tokens_++));
  degrees_.resize(ids_.size(), 1);
  if (size() > budget_) {
    compress({.keys = keys_, .values = values_, .ids = ids_, .degrees = degrees_}, budget_ - parts_.slack, {});
  }
  return count;
}

void MergingCache::compress(const MergedEntries& whole, Index target, std::vector<MergeLink> first_links) {
  const Index outside = parts_.sinks + parts_.recent;
  MergedEntries middle = slice(whole, parts_.sinks, whole.size() - outside);
  for (std::vector<MergeLink> links = std::move(first_links); middle.size() > target - outside; links.clear()) {
    if (links.empty()) links = merge_links(rule_, middle.keys, backend_);
    const Index count = merge_count(schedule_, middle.size(), middle.size() - (target - outside), rounds_++);
    const std::vector<Index> groups = merge_groups(rule_, std::move(links), middle.size(), count);
    middle = merge_entries(rule_, std::move(middle), groups, backend_);
  }
  hold(whole, parts_.sinks, middle);
}

/// The first entries of `whole`, then the middle, then the recent ones of `whole` where there is a middle.
void MergingCache::hold(const MergedEntries& whole, Index sinks, const MergedEntries& middle) {
  const Index recent = middle.size() > 0 ? parts_.recent : 0, from = whole.size() - recent;
  const Index rows = sinks + middle.size() + recent;
  const auto keys = backend_.allocate<float>(rows, whole.keys.cols());
  const auto values = backend_.allocate<float>(rows, whole.values.cols());
  std::vector<TokenId> ids = part(whole.ids, 0, sinks);
  std::vector<float> degrees = part(whole.degrees, 0, sinks);
  const auto add = [&](const MergedEntries& source, Index first, Index count, Index to) {
    copy_rows(source.keys.slice(first, count), keys.slice(to, count), backend_);
    copy_rows(source.values.slice(first, count), values.slice(to, count), backend_);
  };
  add(whole, 0, sinks, 0);
  if (middle.size() > 0) add(middle, 0, middle.size(), sinks);
  add(whole, from, recent, sinks + middle.size());
  ids.insert(ids.end(), middle.ids.begin(), middle.ids.end());
  ids.insert(ids.end(), whole.ids.begin() + from, whole.ids.end());
  degrees.insert(degrees.end(), middle.degrees.begin(), middle.degrees.end());
  degrees.insert(degrees.end(), whole.degrees.begin() + from, whole.degrees.end());
  keys_ = keys, values_ = values;
  ids_ = std::move(ids), degrees_ = std::move(degrees);
  refresh_merged();
}

/// Room for `rows` entries; grows by doubling, as the budget may be far above what will come.
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
  // An entry of one token is that token, to the bit.
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
  arrays.push_back({.name = "degrees", .element = Element::i32, .rows = size(), .cols = 1, .meta = true});
  return arrays;
}

Properties merging_properties() {
  return {.full_budget_exact = Property::yes(),
          .value_scaling = Property::yes(),
          .key_shift = Property::no("cosines change when all keys move"),
          .head_permutation = Property::yes(),
          .nested_budgets = Property::no("a smaller budget merges more, and other tokens stand for the groups"),
          .weight_sum = WeightSum::context};
}

std::shared_ptr<const Prepared> prepare_merging(const HeadPrompt& head, const MergeRule& rule, const MergingParams& params,
                                                Backend& backend) {
  return std::make_shared<MergingPrepared>(ContextLinks(head, rule, backend), params);
}

}  // namespace kvbench
