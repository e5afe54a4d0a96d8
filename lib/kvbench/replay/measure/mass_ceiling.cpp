// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/mass_ceiling.hpp>

#include <algorithm>
#include <functional>

namespace kvbench::replay {

ContextMass::ContextMass(const Head& head)
    : group_(head.group),
      first_(head.map.first),
      tokens_(head.map.middle),
      sums_(static_cast<std::size_t>(group_ * tokens_)),
      best_sums_(static_cast<std::size_t>(group_ + 1)) {}

void ContextMass::add(const ExactBlock& exact) {
  const Index m = exact.block.size(), n = exact.block.scores.cols();
  for (Index g = 0; g < group_; ++g) {
    double* const sums = sums_.data() + g * tokens_;
    for (Index i = 0; i < m; ++i) {
      const float* const shares = exact.shares.data() + (g * m + i) * n + first_;
      for (Index t = 0; t < tokens_; ++t) sums[t] += static_cast<double>(shares[t]);
    }
  }
  queries_ += static_cast<double>(m);
}

const std::vector<double>& ContextMass::best_sums(std::optional<Index> g) {
  std::vector<double>& best = best_sums_[static_cast<std::size_t>(g.value_or(group_))];
  if (!best.empty()) return best;
  std::vector<double> sums(static_cast<std::size_t>(tokens_));
  for (Index head = g.value_or(0); head < (g ? *g + 1 : group_); ++head) {
    for (std::size_t t = 0; t < sums.size(); ++t) sums[t] += sums_[static_cast<std::size_t>(head * tokens_) + t];
  }
  std::ranges::sort(sums, std::greater());
  best.push_back(0);
  for (const double sum : sums) best.push_back(best.back() + sum);
  return best;
}

double ContextMass::ceiling(std::optional<Index> g, Index kept) {
  const std::vector<double>& best = best_sums(g);
  const double lost = best.back() - best[static_cast<std::size_t>(kept)];
  return std::clamp(1 - lost / (queries_ * static_cast<double>(g ? 1 : group_)), 0.0, 1.0);
}

ShrinkingSets::ShrinkingSets(const Head& head)
    : group_(head.group),
      first_(static_cast<std::int32_t>(head.map.first)),
      last_(static_cast<std::int32_t>(head.map.first + head.map.middle)),
      held_(static_cast<std::size_t>(group_), std::vector<bool>(static_cast<std::size_t>(head.map.middle))),
      kept_(static_cast<std::size_t>(group_)) {}

void ShrinkingSets::add(const HostEntries& entries) {
  if (!applies_) return;
  const auto per_query = [](const ReadTable& table) { return table.per_query; };
  applies_ = entries.all_plain() && std::ranges::none_of(entries.tables(), per_query);
  per_head_ |= std::ranges::any_of(entries.tables(), &ReadTable::per_head);
  for (Index g = 0; g < group_ && applies_; ++g) add_row(entries, g);
  started_ = true;
}

void ShrinkingSets::add_row(const HostEntries& entries, Index g) {
  std::vector<bool>& held = held_[static_cast<std::size_t>(g)];
  entries.each(g, 0, first_, last_, [&](std::int32_t id, std::size_t, std::size_t) {
    const auto token = static_cast<std::size_t>(id - first_);
    if (started_) {
      applies_ &= held[token];
    } else {
      held[token] = true;
      ++kept_[static_cast<std::size_t>(g)];
    }
  });
}

std::optional<Index> ShrinkingSets::kept(Index g) const {
  if (!started_ || !applies_) return std::nullopt;
  return kept_[static_cast<std::size_t>(g)];
}

}  // namespace kvbench::replay
