// SPDX-License-Identifier: Apache-2.0
// The ids of the entries that answer a query, by query head, as text and as digest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::golden {

/// One list per query head, or a single one for all of them. Each is ascending; an id stands in it as often as entries
/// have it.
using Ids = std::vector<std::vector<std::int32_t>>;

/// The list of query head g of its kv head.
inline const std::vector<std::int32_t>& ids_of_head(const Ids& ids, Index g) {
  return ids[ids.size() == 1 ? 0 : static_cast<std::size_t>(g)];
}

/// Sorts the lists, and replaces equal ones by a single one.
Ids canonical(Ids ids);

/// "0+3 4 2/0+2 6" of 0 1 2 3 7 9 and 0 1 2 8: each item is the distance to the id before it, or of the first id to 0,
/// and behind a plus the number of ids that follow it without a gap. Slashes stand between lists.
std::string text_of(const Ids& ids);
/// The ids of such a text; absent where it is none, or has more than most_ids of them.
inline constexpr std::size_t most_ids = std::size_t{1} << 20;
/// Of all rows of a file, forty times what the frozen ones have: runs make millions of ids of a few bytes.
inline constexpr std::size_t most_ids_of_file = std::size_t{1} << 24;
std::optional<Ids> parse_ids(std::string_view text);

/// Hex digits of a SHA-256 that rows have: enough to tell traces apart, and to find a slip in a list of ids.
inline constexpr std::size_t digest_digits = 16;

/// First digits of the SHA-256 of one sequence of little-endian int32: for each of `group` query heads the
/// number of its ids, then the ids. Throws IoError where OpenSSL fails.
std::string digest_of(const Ids& ids, Index group);

}  // namespace kvbench::golden
