// SPDX-License-Identifier: Apache-2.0
// One round of merging, shared by `chelsea`, `bsm` and `mesh`: each candidate is linked to its most similar partner by
// the cosine of their keys, the best links are kept, and the entries that they connect become one entry, the
// degree-weighted mean of keys and of values. Links and groups are computed on the host (loops over entries); kernels
// run all loops over dimensions.
#pragma once

#include <vector>

#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

/// The entries of a merging cache, in cache order: merged entries and single tokens.
struct MergedEntries {
  Buffer<const float> keys;    ///< [m, d]
  Buffer<const float> values;  ///< [m, dv]
  std::vector<TokenId> ids;    ///< [m] token that the entry is or represents
  std::vector<float> degrees;  ///< [m] tokens merged in it, whole numbers
  Index size() const { return static_cast<Index>(ids.size()); }
};

/// A link of the entry in slot `from` to the entry in slot `to`.
struct MergeLink {
  Index from = 0, to = 0;
  float similarity = 0;  ///< cosine
  friend auto operator<=>(const MergeLink&, const MergeLink&) = default;
};

struct MergeRule {
  /// bipartite: in each chunk the even offsets (A) are linked to odd ones (B). mesh: every entry to any other.
  enum class Matching { bipartite, mesh };
  /// place: a group takes the place of its B entry. concat: the remaining entries of A, then B, over all chunks.
  enum class Order { place, concat };
  Matching matching = Matching::bipartite;
  Index chunk = 0;  ///< entries, bipartite only; 0: one chunk of all entries
  Order order = Order::place;
  std::string_view method = {};  ///< name of the method, for the message of the limit
  PairLimit limit = {.pairs = unbounded};
};

/// Share of the entries that the i-th round may remove: max(ratio - decay * i, floor).
struct MergeSchedule {
  double ratio = 0.5, decay = 0, floor = 0.05;
};

/// Entries that a round removes: `excess`, but at most the schedule's share (rounded down), at most half of `entries`,
/// and at least one. entries >= 2, excess >= 1.
Index merge_count(const MergeSchedule& schedule, Index entries, Index excess, Index round);

/// The links of all slots that have a partner, by increasing `from`. A chunk of one entry has none. Throws
/// Infeasible above the rule's limit.
std::vector<MergeLink> merge_links(const MergeRule& rule, const Buffer<const float>& keys, Backend& backend);

/// Number of A slots among `entries` slots: those that are linked to a partner.
Index linking_slots(const MergeRule& rule, Index entries);

/// Keeps the most similar links, ties to the lower `from`, until they remove `count` entries; links between slots that
/// are already connected remove none and are skipped. Returns, for every slot, the slot of its group: that of its B
/// entry; in a mesh that of its first entry.
std::vector<Index> merge_groups(const MergeRule& rule, std::vector<MergeLink> links, Index slots, Index count);

/// The entries after a round, in the new order.
struct MergedGroups {
  std::vector<TokenId> ids;             ///< [left]
  std::vector<float> degrees;           ///< [left]
  Buffer<const std::int32_t> slots;     ///< [left, 1] slot of each group before the round
  Buffer<const std::int32_t> group_of;  ///< [m, 1] group of each entry; -1: a group of one entry
  Buffer<const float> weights;          ///< [m, 1] degrees before the round
  Index size() const { return static_cast<Index>(ids.size()); }
};
MergedGroups merged_groups(const MergeRule& rule, const MergedEntries& entries, const std::vector<Index>& group_of,
                           Backend& backend);
/// Writes the means of `rows` [m, c] over each group to `out` [left, c]; rows of groups of one entry are copied
/// exactly.
void merge_rows(const MergedGroups& groups, const Buffer<const float>& rows, const Buffer<float>& out,
                Backend& backend);

/// Merges each group into one entry; groups of one entry are copied exactly.
MergedEntries merge_entries(const MergeRule& rule, MergedEntries entries, const std::vector<Index>& group_of,
                            Backend& backend);

}  // namespace kvbench::methods
