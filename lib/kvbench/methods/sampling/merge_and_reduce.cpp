// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/merge_and_reduce.hpp>

#include <algorithm>
#include <bit>

namespace kvbench::methods {

MergeAndReduce::MergeAndReduce(const Settings& settings, Index d, Index dv, Backend& backend)
    : backend_(backend), settings_(settings) {
  const Level empty{{}, {backend, backend.allocate<float>(0, d)}, {backend, backend.allocate<float>(0, dv)}};
  levels_.assign(static_cast<std::size_t>(settings.levels) + 1, empty);
}

void MergeAndReduce::take(TokenId id, std::int32_t row, const Buffer<const float>& keys,
                          const Buffer<const float>& values, const Draws& draws) {
  levels_[0].ids.push_back(id);
  pending_.push_back(row);
  ++tokens_;
  if (settings_.levels == 0 || tokens_ % settings_.t != 0) return;
  flush(keys, values);
  Index p = tokens_ / settings_.t;
  for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
    reduce(i, draws);
    if (p % 2 != 0) break;
    p /= 2;
  }
}

void MergeAndReduce::flush(const Buffer<const float>& keys, const Buffer<const float>& values) {
  if (settings_.levels > 0) {  // level T is never reduced
    levels_[0].keys.append(keys, pending_);
    if (has_values()) levels_[0].values.append(values, pending_);
  }
  pending_.clear();
}

void MergeAndReduce::reduce(std::size_t level, const Draws& draws) {
  Level& from = levels_[level];
  Level& to = levels_[level + 1];
  const Index n = std::ssize(from.ids);
  if (n == 0) return;
  const std::vector<std::int32_t> whole = {0, static_cast<std::int32_t>(n)};
  WalkRows rows{.keys = from.keys.rows(),
                .starts = whole,
                .uniforms = token_uniforms(draws, from.ids, settings_.first_draw + static_cast<std::uint32_t>(level)),
                .value_radius = settings_.value_radius};
  if (has_values()) rows.values = from.values.rows();
  const WalkSigns walked = softmax_balance(rows, settings_.walk, backend_);
  fails_ += walked.fails;
  steps_ += walked.steps;
  const std::vector<std::int32_t> kept = smaller_halves(walked.signs, whole);
  for (const std::int32_t place : kept) to.ids.push_back(from.ids[static_cast<std::size_t>(place)]);
  if (level + 2 < levels_.size()) {
    to.keys.append(from.keys.rows(), kept);
    if (has_values()) to.values.append(from.values.rows(), kept);
  }
  from.ids.clear();
  from.keys.clear();
  from.values.clear();
}

std::vector<std::vector<TokenId>> MergeAndReduce::tokens() const {
  std::vector<std::vector<TokenId>> all;
  for (const Level& level : levels_) all.push_back(level.ids);
  return all;
}

Index MergeAndReduce::held() const {
  Index count = 0;
  for (const Level& level : levels_) count += std::ssize(level.ids);
  return count;
}

Index held_after(Index tokens, Index t, Index levels) {
  if (levels == 0) return tokens;
  const Index batches = tokens / t, below = levels - 1;
  const auto lower = static_cast<std::uint64_t>(batches) & ((std::uint64_t{1} << below) - 1);
  return tokens % t + t / 2 * (std::popcount(lower) + (batches >> below));
}

Index held_up_to(Index tokens, Index t, Index levels) {
  if (levels == 0 || tokens < t) return tokens;
  const Index below = levels - 1,
              lower = std::min<Index>(below, std::bit_width(static_cast<std::uint64_t>(tokens / t)));
  return t - 1 + t / 2 * (lower + (tokens / t >> below));
}

}  // namespace kvbench::methods
