// SPDX-License-Identifier: Apache-2.0
// What a cache in Python says that it holds, compared with what it answers by. The property tests hold the methods of
// the registry to the same; nothing tests those of users before they run.
#pragma once

#include <vector>

#include <kvbench/methods/contract/footprint.hpp>
#include <kvbench/methods/contract/info.hpp>

#include <python/extension/answers.hpp>

namespace kvbench::python {

/// The entries of one kv head in one state, between tokens that were appended.
class HeldEntries {
 public:
  /// Forgets the entries: a new state begins.
  void forget();
  void note(const Answer& answer);
  /// Throws std::logic_error where these arrays cannot hold the entries, with d numbers per key and dv per value.
  void check(const methods::Footprint& arrays, Index d, Index dv) const;

  Index most_used = 0;  ///< entries that answered a query
  Index copies = 1;     ///< G where query heads read entries of their own, at any time

 private:
  Index rows_needed() const;

  std::vector<bool> tokens_;  ///< by id: whether it has answered a query
  Index own_ = 0;             ///< the most entries with keys or values of their own that answered a query
  bool weighted_ = false;
};

/// What a cache of so many heads may hold: B tokens per kv head, and the decoded ones.
struct Allowance {
  methods::Kind kind = methods::Kind::eviction;
  Index budget = 0, decoded = 0;
  Index d = 0, dv = 0;

  /// Throws std::logic_error where these entries exceed it, together for all heads.
  void check(std::span<const HeldEntries> heads) const;
  /// Throws std::logic_error where these arrays exceed it.
  void check(std::span<const HeldEntries> heads, std::span<const methods::Footprint> arrays) const;
};

}  // namespace kvbench::python
