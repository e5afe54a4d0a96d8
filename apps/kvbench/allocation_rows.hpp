// SPDX-License-Identifier: Apache-2.0
// The rows of kvbench allocate, one per budget, and what a reader is told of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/allocate/allocate.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::app {

/// An allocation with the names of what it chose.
struct AllocationRow : allocate::Allocation {
  std::string model, figure;  ///< figure: Damages::figure()
  std::string divided_among;
  std::string equal_method;
  double plan_share = 0, equal_share = 0;  ///< of the memory of all layers, held
};

AllocationRow allocation_row(const allocate::Damages& damages, allocate::Allocation allocation);

/// Those of --curve.
std::span<const report::Column<AllocationRow>> allocation_columns();

/// First what documents say from which the plan was not computed.
std::vector<std::string> sentences(const allocate::Damages& damages, const AllocationRow& row);

}  // namespace kvbench::app
