// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/heavy_hitters.hpp>

#include <algorithm>
#include <numeric>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// A mask of the `count` lowest scores, ties to the first.
std::vector<bool> least(const std::vector<double>& scores, Index count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::nth_element(order, order.begin() + count, {}, [&](std::size_t i) { return std::pair(scores[i], i); });
  std::vector<bool> chosen(scores.size(), false);
  for (Index i = 0; i < count; ++i) chosen[order[static_cast<std::size_t>(i)]] = true;
  return chosen;
}

/// Drops the elements that the mask marks; elements beyond the mask are kept.
template <class T>
void drop(std::vector<T>& list, const std::vector<bool>& mask) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i >= mask.size() || !mask[i]) list[kept++] = list[i];
  }
  list.resize(kept);
}

}  // namespace

HeavyHitters::HeavyHitters(Index group, const GroupChoice& choice, Index heavy, Index recent)
    : choice_(choice),
      heavy_(heavy),
      recent_(recent),
      ids_(choice.per_head() ? static_cast<std::size_t>(group) : 1),
      scores_(static_cast<std::size_t>(group)) {}

void HeavyHitters::hold(std::span<const float> sums) {
  const std::size_t n = sums.size() / scores_.size();
  for (auto& list : ids_) list = token_range(0, static_cast<Index>(n));
  for (std::size_t g = 0; g < scores_.size(); ++g) {
    const auto row = sums.subspan(g * n, n);
    scores_[g].assign(row.begin(), row.end());
  }
}

void HeavyHitters::add(TokenId id) {
  for (auto& list : ids_) list.push_back(id);
  for (auto& list : scores_) list.push_back(0);
}

void HeavyHitters::observe(Index g, std::span<const float> attention) {
  std::vector<double>& scores = scores_[static_cast<std::size_t>(g)];
  for (std::size_t i = 0; i < attention.size(); ++i) scores[i] += attention[i];
}

std::vector<double> HeavyHitters::decisive_scores(std::size_t row, std::size_t count) const {
  const std::vector<double>& first = scores_[row];
  std::vector<double> decisive(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count));
  if (choice_.per_head()) return decisive;
  for (std::size_t g = 1; g < scores_.size(); ++g) {
    for (std::size_t i = 0; i < count; ++i) {
      const double score = scores_[g][i];
      decisive[i] = choice_.reduce == kernels::Reduction::max ? std::max(decisive[i], score) : decisive[i] + score;
    }
  }
  return decisive;  // sum and mean order tokens alike
}

void HeavyHitters::evict() {
  const Index excess = held() - heavy_ - recent_;
  if (excess <= 0) return;
  const auto candidates = static_cast<std::size_t>(held() - recent_);
  for (std::size_t row = 0; row < ids_.size(); ++row) {
    const std::vector<bool> evicted = least(decisive_scores(row, candidates), excess);
    drop(ids_[row], evicted);
    for (std::size_t g = 0; g < scores_.size(); ++g) {
      if (row_of(static_cast<Index>(g)) == row) drop(scores_[g], evicted);
    }
  }
}

std::vector<TokenId> HeavyHitters::ids() const {
  std::vector<TokenId> all;
  for (const auto& list : ids_) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace kvbench::methods
