// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/recall.hpp>

#include <algorithm>
#include <array>

namespace kvbench::replay {
namespace {

/// Adds these tokens. Logits and shares are prefetched, and no branch depends on a token: half of them would be
/// mispredicted.
void add(std::span<const std::int32_t> ids, const BestTokens& best, const float* logits, const float* shares,
         Overlap& overlap) {
  constexpr std::size_t ahead = 64;
  const std::size_t fetching = ids.size() - std::min(ahead, ids.size());
  const auto take = [&](std::int32_t id) {
    overlap.common += best.hold(logits[id], id);
    overlap.mass += static_cast<double>(shares[id]);
  };
  for (std::size_t k = 0; k < fetching; ++k) {
    __builtin_prefetch(logits + ids[k + ahead]);
    __builtin_prefetch(shares + ids[k + ahead]);
    take(ids[k]);
  }
  for (const std::int32_t id : ids.subspan(fetching)) take(id);
}

/// Adds those of `ids` that are in [first, last), which is not empty.
void add_inside(std::span<const std::int32_t> ids, std::int32_t first, std::int32_t last, const BestTokens& best,
                const float* logits, const float* shares, Overlap& overlap) {
  if (count_inside(ids, first, last) == std::ssize(ids)) return add(ids, best, logits, shares, overlap);
  std::array<std::int32_t, 256> inside;
  const std::uint32_t width = static_cast<std::uint32_t>(last) - static_cast<std::uint32_t>(first);
  for (std::size_t begin = 0; begin < ids.size(); begin += inside.size()) {
    std::size_t count = 0;
    for (const std::int32_t id : ids.subspan(begin, std::min(inside.size(), ids.size() - begin))) {
      inside[count] = id;
      count += static_cast<std::uint32_t>(id) - static_cast<std::uint32_t>(first) < width;
    }
    add(std::span(inside).first(count), best, logits, shares, overlap);
  }
}

}  // namespace

Overlap overlap_of(const HostEntries& entries, ExactBlock& exact, const RecallRange& range, Index g, Index i,
                   Index entries_i, Backend& backend) {
  if (entries.two_sets()) return {};
  const auto at = static_cast<std::size_t>(i);
  const auto first = std::max(static_cast<std::int32_t>(range.first), exact.visible_first[at]);
  const auto last = std::min(static_cast<std::int32_t>(range.last), exact.visible_last[at]);
  const auto [kept, merged] = entries.count(g, entries_i, first, last);
  if (kept == 0 || merged > 0) return {};
  if (kept == last - first) return {.kept = kept, .common = kept};  // all tokens are kept, and no ranking is needed
  const Index r = g * exact.block.size() + i, n = exact.block.scores.cols();
  const BestTokens best = exact.best(backend, kept, range.first, range.last, r);
  const float* logits = exact.scores.data() + r * n;
  const float* shares = exact.shares.data() + r * n;
  Overlap overlap{.kept = kept, .best_mass = best.mass};
  entries.each_row(g, entries_i, [&](std::size_t t, std::size_t begin) {
    const ReadTable& table = entries.tables()[t];
    add_inside(std::span(table.ids).subspan(begin, static_cast<std::size_t>(table.width)), first, last, best, logits,
               shares, overlap);
  });
  return overlap;
}

}  // namespace kvbench::replay
