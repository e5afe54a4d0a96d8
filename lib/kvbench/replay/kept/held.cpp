// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/kept/held.hpp>

#include <algorithm>

namespace kvbench::replay {
namespace {

/// The largest number of tokens below `tokens` that are held at a time. With rows per query head, each query head holds
/// its own.
Index most_held(const HeldTokens& held, const methods::HostTable& table, Index group, Index tokens) {
  const auto count = [&](Index row) {
    return static_cast<Index>(
        std::ranges::count_if(held.row(row), [&](std::int32_t id) { return id >= 0 && id < tokens; }));
  };
  if (held.rows <= 1) return count(0);
  const Index heads = table.per_head ? group : 1, queries = table.rows / heads;
  Index most = 0;
  for (Index i = 0; i < queries; ++i) {
    Index sum = 0;
    for (Index g = 0; g < heads; ++g) sum += count(g * queries + i);
    most = std::max(most, sum);
  }
  return most;
}

Index count_used(const HostView<std::int32_t>& ids, Index tokens) {
  return std::ranges::count_if(ids, [&](std::int32_t id) { return id >= 0 && id < tokens; });
}

}  // namespace

std::span<const std::int32_t> HeldTokens::row(Index r) const {
  const Index at = rows > 1 ? r : 0;
  return std::span(ids).subspan(static_cast<std::size_t>(at * width), static_cast<std::size_t>(width));
}

std::int32_t HeldTokens::listed_twice() const {
  std::vector<std::int32_t> sorted;
  for (Index r = 0; r < rows; ++r) {
    sorted.assign(row(r).begin(), row(r).end());
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted, [](auto a, auto b) { return a == b && a >= 0; });
    if (twice != sorted.end()) return *twice;
  }
  return -1;
}

std::int32_t KeptTable::entry_not_held() const {
  if (!declared()) return -1;
  const bool same = fast.rows <= 1 && slow.rows <= 1;
  std::vector<std::int32_t> held;
  for (Index r = 0; r < entries.rows; ++r) {
    if (r == 0 || !same) {
      held.assign(fast.row(r).begin(), fast.row(r).end());
      held.insert(held.end(), slow.row(r).begin(), slow.row(r).end());
      std::ranges::sort(held);
    }
    const auto missing = std::ranges::find_if(
        entries.row(r), [&](std::int32_t id) { return id >= 0 && !std::ranges::binary_search(held, id); });
    if (missing != entries.row(r).end()) return *missing;
  }
  return -1;
}

methods::Footprint held_footprint(const KeptHead& head, Index group, Index tokens, Index decoded, Index d, Index dv) {
  Index fast = 0, slow = 0, weights = 0, meta_bytes = 0;
  Index entries = decoded, entry_weights = 0;  // of tables that declare nothing
  bool full_cache = false, selects = false;
  for (const KeptTable& table : head.tables) {
    const methods::HostTable& of = table.entries;
    meta_bytes += table.meta_bytes;
    selects |= of.per_query || table.declared();
    if (table.declared()) {
      const Index in_fast = most_held(table.fast, of, group, tokens),
                  in_slow = most_held(table.slow, of, group, tokens);
      fast += in_fast, slow += in_slow;
      weights += (in_fast + in_slow) * (Index{!of.weight_num.empty()} + Index{!of.weight_den.empty()});
    } else {
      full_cache |= of.per_query;
      entries += count_used(of.ids, tokens);
      entry_weights += static_cast<Index>(of.weight_num.size() + of.weight_den.size());
    }
  }
  if (full_cache) {
    slow += tokens;
  } else {
    fast += entries, weights += entry_weights;
  }
  methods::Footprint arrays;
  const auto add_tier = [&](Index rows, methods::Tier tier, Index other) {
    if (rows == 0) return;
    // An entry of a selection is read from one of the tiers; its reads count in the one that holds more.
    const methods::Read read = !selects ? methods::Read::every_query
                               : rows > other || (rows == other && tier == methods::Tier::fast)
                                   ? methods::Read::with_entry
                                   : methods::Read::never;
    arrays.push_back({.name = "keys", .rows = rows, .cols = d, .tier = tier, .read = read});
    arrays.push_back(
        {.name = "values", .rows = rows, .cols = dv, .tier = tier, .read = read, .content = methods::Content::values});
  };
  add_tier(fast, methods::Tier::fast, slow);
  add_tier(slow, methods::Tier::slow, fast);
  const auto add_meta = [&](const char* name, methods::Element element, Index rows) {
    if (rows > 0)
      arrays.push_back({.name = name, .element = element, .rows = rows, .cols = 1, .content = methods::Content::meta});
  };
  add_meta("weights", methods::Element::f32, weights);
  add_meta("metadata", methods::Element::u8, meta_bytes);
  return arrays;
}

}  // namespace kvbench::replay
