// SPDX-License-Identifier: Apache-2.0
// The rows of kvbench allocate, one per budget, and what a reader is told of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/allocate/allocate.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/report/read/labels.hpp>

namespace kvbench::app {

/// An allocation with the names of what it chose.
struct AllocationRow : allocate::Allocation {
  std::string model, figure;  ///< figure: Damages::figure()
  std::string divided_among;
  std::string equal_method;
  double plan_share = 0, equal_share = 0;  ///< of the memory of all layers, held
  std::size_t layers_outside = 0;          ///< in which entries of the menu are outside the region of predictions
  allocate::Accept accept = allocate::Accept::expected;
  std::vector<std::string> beside;  ///< of an engine, sentences on other plans
  bool divides = true;              ///< whether the engine of --for can set what differs between layers

  /// Whether the plan is written; otherwise equal budgets are.
  bool planned() const { return Allocation::planned(accept); }
};

/// The methods of the menu by entry, with their parameters: "h2o+q5_1", "h2o sinks=8".
using MenuNames = std::vector<std::string>;
/// As the labels show them. Throws Error where one fits no method of the menu.
MenuNames menu_names(const allocate::Damages& damages, const report::Labels& labels);

AllocationRow allocation_row(const allocate::Damages& damages, allocate::Allocation allocation,
                             allocate::Accept accept);

/// Those of --curve.
std::span<const report::Column<AllocationRow>> allocation_columns();

/// Which entries of the menu are left out in which layers, because their damage there cannot be predicted, and by what
/// anchors correct the others.
std::vector<std::string> outside_sentences(const allocate::Damages& damages, const MenuNames& names);

/// First what documents say from which the plan was not computed.
std::vector<std::string> sentences(const allocate::Damages& damages, const AllocationRow& row, const MenuNames& names);

}  // namespace kvbench::app
