// SPDX-License-Identifier: Apache-2.0
// Entry tables on the host, and the verification of the tables that a method returned.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <kvbench/methods/contract/attend.hpp>

namespace kvbench::methods {

/// An EntryTable on the host, with its optional parts empty where they are absent.
struct HostTable {
  bool per_head = false;
  bool per_query = false;
  Place place = Place::retrieved;
  Index rows = 0, width = 0;
  HostView<std::int32_t> ids;              ///< [rows, width]
  HostView<float> weight_num, weight_den;  ///< [rows, width]
  HostView<float> own_keys, own_values;    ///< [rows*width, d], [rows*width, dv]
  HostView<float> range;                   ///< [2, dv]
  bool rows_by_token = false;              ///< it has token keys or token values, which stay where they are
  bool rounded = false;                    ///< as in EntryTable
  HostView<std::int32_t> cluster_ids;      ///< [rows, width]

  /// Whether entries answer by other rows than those of their tokens, or within a range.
  bool own() const { return !own_keys.empty() || !own_values.empty() || rows_by_token || !range.empty(); }
  /// Whether entries stand for more than the token of their id.
  bool merged() const { return own() && !rounded; }
  bool weighted() const { return !weight_num.empty() || !weight_den.empty(); }
  float num(std::size_t slot) const { return weight_num.empty() ? 1 : weight_num[slot]; }
  float den(std::size_t slot) const { return weight_den.empty() ? 1 : weight_den[slot]; }
  std::span<const std::int32_t> row(Index r) const {
    return std::span(ids).subspan(static_cast<std::size_t>(r * width), static_cast<std::size_t>(width));
  }
};

/// The ids in use of a table's row [width] if they increase and unused slots come last; absent where they do not.
std::optional<std::span<const std::int32_t>> increasing_ids(std::span<const std::int32_t> row);

HostTable on_host(const EntryTable& table, Backend& backend);

/// Reads tables and checks them. Rows of slots and of tokens that are the same arrays as in the call before are neither
/// read nor checked again.
class EntryChecker {
 public:
  /// As check_entries().
  std::vector<HostTable> check(Backend& backend, const HeadTokens& tokens, Index num_queries, Index limit,
                               std::span<const EntryTable> tables);

 private:
  struct OwnRows {
    Buffer<const float> rows;
    HostView<float> host;
  };
  HostView<float> read(const Buffer<const float>& rows, OwnRows& known, const char* fault, Backend& backend) const;

  std::vector<std::array<OwnRows, 2>> known_;  ///< keys and values, by table
  std::array<OwnRows, 2> known_by_token_;      ///< the same by token, of the last table that has them
};

/// The tables on the host, checked. Throws std::logic_error, naming the fault, where they break the contract: a wrong
/// number of rows, shapes that do not match (rows by token: one for each token below `limit`), ids outside [-1, limit),
/// an id twice for the same query and sum (entries with wN = 0 and entries with wD = 0 belong to different sets),
/// numbers that are not finite, negative weights without a range. Throws Unavailable for rows of values that are no
/// part of those of keys, where those of tokens are.
std::vector<HostTable> check_entries(Backend& backend, const HeadTokens& tokens, Index num_queries, Index limit,
                                     std::span<const EntryTable> tables);

}  // namespace kvbench::methods
