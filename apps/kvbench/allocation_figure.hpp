// SPDX-License-Identifier: Apache-2.0
// What layers or kv heads get in the plans of kvbench allocate, and how much of it hangs on single documents.
#pragma once

#include <span>

#include <kvbench/report/document/document.hpp>

#include <apps/kvbench/allocation_rows.hpp>

namespace kvbench::app {

/// One line per budget: the share of its cache that each layer or head holds. The bar at a point goes from the least to
/// the most that it holds in the plans of all documents but one. Below it model, documents and `names` of the menu.
report::Drawing plan_figure(const allocate::Damages& damages, std::span<const AllocationRow> allocations,
                            const MenuNames& names);

}  // namespace kvbench::app
