// SPDX-License-Identifier: Apache-2.0
// Tables of codes of bits: which tokens have the code of a query.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kvbench/core/ids.hpp>
#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

/// The codes of consecutive groups of `bits` projections: bit b of code t is projections[t * bits + b] > threshold of
/// the same place. At most 16 bits; projections.size() is a whole number of codes.
std::vector<std::uint16_t> codes_of(std::span<const float> projections, std::span<const float> thresholds, int bits);

class HashTables {
 public:
  /// codes[j * tables + t]: the code of token j in table t, below 2^bits.
  HashTables(std::span<const std::uint16_t> codes, Index tables, int bits);

  struct Found {
    std::vector<TokenId> tokens;  ///< in increasing order
    Index tables = 0;             ///< that found them
    Index asked = 0;              ///< the same and the one that found too many, which was read to know that
    Index read = 0;               ///< tokens of the range in the buckets of the tables that were asked
  };
  /// The tokens of [first, last) whose codes are those of `query` [tables] in two tables or more, of as many of the
  /// first tables as find at most `most`.
  Found find(std::span<const std::uint16_t> query, Index first, Index last, Index most) const;

 private:
  std::span<const TokenId> bucket(Index table, std::uint16_t code) const;

  Index tokens_, tables_, codes_;
  std::vector<std::int32_t> starts_;  ///< [tables, 2^bits + 1]
  std::vector<TokenId> content_;      ///< [tables, tokens] by code, then by token
};

}  // namespace kvbench::methods
