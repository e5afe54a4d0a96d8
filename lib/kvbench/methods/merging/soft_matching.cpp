// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/soft_matching.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// Entries per chunk; rule.chunk = 0 puts the whole middle into one chunk.
Index chunk_size(const MergeRule& rule, Index entries) {
  return rule.chunk == 0 ? std::max<Index>(1, entries) : rule.chunk;
}

/// The slots of A and of B, and for each A the range of B that lies in its chunk.
struct Partition {
  std::vector<std::int32_t> a, b, first, last;
};

Partition partition(const MergeRule& rule, Index entries) {
  const Index chunk = chunk_size(rule, entries);
  Partition sets;
  for (Index begin = 0; begin < entries; begin += chunk) {
    const Index end = std::min(begin + chunk, entries);
    const auto before = static_cast<std::int32_t>(sets.b.size());
    for (Index slot = begin; slot < end; ++slot) {
      ((slot - begin) % 2 == 0 ? sets.a : sets.b).push_back(static_cast<std::int32_t>(slot));
    }
    sets.first.resize(sets.a.size(), before);
    sets.last.resize(sets.a.size(), static_cast<std::int32_t>(sets.b.size()));
  }
  return sets;
}

/// Copies of the rows at `slots`, normalised to length one.
Buffer<const float> unit_rows(const Buffer<const float>& keys, const std::vector<std::int32_t>& slots,
                              Backend& backend) {
  const Buffer<float> unit = gathered(keys, slots, backend);
  backend.run(kernels::NormalizeRows<Buffer>{.rows = unit, .out = unit});
  return unit;
}

struct Matches {
  std::vector<std::int32_t> best;
  std::vector<float> score;
};

/// Allocates the results of `match` and runs it.
Matches run(kernels::BestMatch<Buffer> match, Backend& backend) {
  const auto best = backend.allocate<std::int32_t>(match.points.rows());
  const auto score = backend.allocate<float>(match.points.rows());
  match.best = best;
  match.score = score;
  backend.run(match);
  return {backend.read(best), backend.read(score)};
}

/// Links within the rows of one or more whole chunks.
std::vector<MergeLink> bipartite_links(const MergeRule& rule, const Buffer<const float>& keys, Backend& backend) {
  const Partition sets = partition(rule, keys.rows());
  const auto count = static_cast<Index>(sets.a.size());
  Index pairs = 0;
  for (std::size_t i = 0; i < sets.a.size(); ++i) pairs += sets.last[i] - sets.first[i];
  const Matches matches = run({.points = unit_rows(keys, sets.a, backend),
                               .candidates = unit_rows(keys, sets.b, backend),
                               .first = backend.adopt(std::vector(sets.first), count),
                               .last = backend.adopt(std::vector(sets.last), count),
                               .pairs = pairs},
                              backend);
  std::vector<MergeLink> links;
  for (std::size_t i = 0; i < sets.a.size(); ++i) {
    if (matches.best[i] >= 0) links.push_back({sets.a[i], sets.b[at(matches.best[i])], matches.score[i]});
  }
  return links;
}

std::vector<MergeLink> mesh_links(const Buffer<const float>& keys, Backend& backend) {
  const auto unit = normalized(keys, backend);
  const Matches matches = run({.points = unit, .candidates = unit, .skip_self = true}, backend);
  std::vector<MergeLink> links;
  for (std::size_t i = 0; i < matches.best.size(); ++i) {
    links.push_back({static_cast<Index>(i), matches.best[i], matches.score[i]});
  }
  return links;
}

/// The slot of the group of `slot`; compresses the path to it.
Index root(std::vector<Index>& group_of, Index slot) {
  while (group_of[at(slot)] != slot) slot = group_of[at(slot)] = group_of[at(group_of[at(slot)])];
  return slot;
}

/// All slots in the order after a round.
std::vector<std::int32_t> left_order(const MergeRule& rule, Index entries) {
  if (rule.order == MergeRule::Order::concat) {
    Partition sets = partition(rule, entries);
    sets.a.insert(sets.a.end(), sets.b.begin(), sets.b.end());
    return sets.a;
  }
  std::vector<std::int32_t> slots(at(entries));
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

}  // namespace

Index merge_count(const MergeSchedule& schedule, Index entries, Index excess, Index round) {
  const double share = std::max(schedule.ratio - schedule.decay * static_cast<double>(round), schedule.floor);
  // 1e-9: a product such as 0.29 * 100 must not round down because of its rounding error.
  const auto allowed = static_cast<Index>(std::floor(share * static_cast<double>(entries) + 1e-9));
  return std::min(excess, std::clamp<Index>(allowed, 1, entries / 2));
}

std::vector<MergeLink> merge_links(const MergeRule& rule, const Buffer<const float>& keys, Backend& backend) {
  if (keys.rows() < 2) return {};
  const double entries = static_cast<double>(keys.rows());
  const double candidates =
      rule.matching == MergeRule::Matching::mesh ? entries : static_cast<double>(chunk_size(rule, keys.rows())) / 4;
  check_pairs(rule.limit, rule.method, entries * candidates,
              "take a shorter context, or chelsea, which compares inside chunks");
  if (rule.matching == MergeRule::Matching::mesh) return mesh_links(keys, backend);
  // A few chunks at a time: copies of all keys would double the memory of a long head.
  constexpr Index some = 16384;
  const Index chunk = chunk_size(rule, keys.rows()), step = std::max(chunk, some / chunk * chunk);
  std::vector<MergeLink> links;
  for (Index begin = 0; begin < keys.rows(); begin += step) {
    const Index count = std::min(step, keys.rows() - begin);
    for (const MergeLink& link : bipartite_links(rule, keys.slice(begin, count), backend)) {
      links.push_back({begin + link.from, begin + link.to, link.similarity});
    }
  }
  return links;
}

Index linking_slots(const MergeRule& rule, Index entries) {
  if (rule.matching == MergeRule::Matching::mesh) return entries;
  const Index chunk = chunk_size(rule, entries), rest = entries % chunk;
  return entries / chunk * ((chunk + 1) / 2) + (rest + 1) / 2;
}

std::vector<Index> merge_groups(const MergeRule& rule, std::vector<MergeLink> links, Index slots, Index count) {
  std::ranges::stable_sort(links, [](const MergeLink& a, const MergeLink& b) { return a.similarity > b.similarity; });
  std::vector<Index> group_of(at(slots));
  std::iota(group_of.begin(), group_of.end(), 0);
  for (const MergeLink& link : links) {
    if (count == 0) break;
    Index from = root(group_of, link.from), to = root(group_of, link.to);
    if (from == to) continue;
    if (rule.matching == MergeRule::Matching::mesh && from < to) std::swap(from, to);
    group_of[at(from)] = to;
    --count;
  }
  for (Index slot = 0; slot < slots; ++slot) group_of[at(slot)] = root(group_of, slot);
  return group_of;
}

MergedGroups merged_groups(const MergeRule& rule, const MergedEntries& entries, const std::vector<Index>& group_of,
                           Backend& backend) {
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> new_slot(group_of.size(), -1);
  for (const std::int32_t slot : left_order(rule, entries.size())) {
    if (group_of[at(slot)] != slot) continue;
    new_slot[at(slot)] = static_cast<std::int32_t>(left.size());
    left.push_back(slot);
  }
  MergedGroups out{.ids = std::vector<TokenId>(left.size()), .degrees = std::vector<float>(left.size(), 0)};
  std::vector<std::int32_t> members(left.size(), 0);
  for (std::size_t slot = 0; slot < group_of.size(); ++slot) {
    const auto group = at(new_slot[at(group_of[slot])]);
    out.degrees[group] += entries.degrees[slot];
    ++members[group];
    if (group_of[slot] == static_cast<Index>(slot)) out.ids[group] = entries.ids[slot];
  }
  // Groups of one entry have label -1: MeanRows does not change their gathered rows.
  std::vector<std::int32_t> label(group_of.size(), -1);
  for (std::size_t slot = 0; slot < group_of.size(); ++slot) {
    const std::int32_t group = new_slot[at(group_of[slot])];
    if (members[at(group)] > 1) label[slot] = group;
  }
  out.slots = backend.adopt(std::move(left), out.size());
  out.group_of = backend.adopt(std::move(label), entries.size());
  out.weights = backend.adopt(std::vector(entries.degrees), entries.size());
  return out;
}

void merge_rows(const MergedGroups& groups, const Buffer<const float>& rows, const Buffer<float>& out,
                Backend& backend) {
  backend.run(kernels::GatherRows<Buffer>{.source = rows, .ids = groups.slots, .out = out});
  backend.run(kernels::MeanRows<Buffer>{.rows = rows,
                                        .labels = groups.group_of,
                                        .weights = groups.weights,
                                        .out = out,
                                        .mass = backend.allocate<float>(out.rows())});
}

MergedEntries merge_entries(const MergeRule& rule, MergedEntries entries, const std::vector<Index>& group_of,
                            Backend& backend) {
  MergedGroups groups = merged_groups(rule, entries, group_of, backend);
  // Keys before values, so that the memory of the merged keys is released before the values are copied.
  const auto merged = [&](Buffer<const float> rows) -> Buffer<const float> {
    const auto means = backend.allocate<float>(groups.size(), rows.cols());
    merge_rows(groups, rows, means, backend);
    return means;
  };
  MergedEntries out;
  out.keys = merged(std::exchange(entries.keys, {}));
  out.values = merged(std::exchange(entries.values, {}));
  out.ids = std::move(groups.ids);
  out.degrees = std::move(groups.degrees);
  return out;
}

}  // namespace kvbench::methods
