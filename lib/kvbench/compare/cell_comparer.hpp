// SPDX-License-Identifier: Apache-2.0
// Compares configurations within one cell: a layer, a query head, a prompt or a trace.
#pragma once

#include <algorithm>

#include <kvbench/compare/comparison.hpp>

namespace kvbench {

/// Places that are compared as one, and what their rows say beside their figures.
struct ComparisonCell {
  Comparison identity;
  std::vector<std::size_t> places;
};
/// Every place stands in one cell; cells in order of their first places.
std::vector<ComparisonCell> cells_of(const std::vector<QueryPlace>& places, Span span);

/// A side at all places of a cell.
using SideCell = std::vector<SideValues>;
inline bool found(const SideCell& cell) { return std::ranges::any_of(cell, &SideValues::found); }

class CellComparer {
 public:
  CellComparer(const Catalogue& catalogue, const ComparisonCell& cell, Metric metric, int flips)
      : catalogue_(catalogue), cell_(cell), metric_(metric), flips_(flips) {}

  /// The values, as they are compared: log_z_err by its size.
  SideCell read(const Side& side) const;

  /// A row without an adjusted p-value: `tied`, or `skipped` with the reason.
  Comparison compare(const Side& a, const SideCell& in_a, const Side& b, const SideCell& in_b) const;

 private:
  std::vector<std::size_t> usable_places(const SideCell& in_a, const SideCell& in_b, Comparison& out) const;

  const Catalogue& catalogue_;
  const ComparisonCell& cell_;
  Metric metric_;
  int flips_;
};

}  // namespace kvbench
