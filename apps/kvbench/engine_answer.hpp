// SPDX-License-Identifier: Apache-2.0
// What kvbench allocate --for ENGINE says beside the plan: what one types, and what other plans would be worth.
#pragma once

#include <string>

#include <kvbench/allocate/engines.hpp>

#include <apps/kvbench/allocation_rows.hpp>

namespace kvbench::app {

/// The rule "the first 2 and the last 2 layers in 16 bits" and a plan without the limits of the engine (`free`), beside
/// the answer.
std::vector<std::string> sentences_beside(const methods::EngineInfo& engine, const allocate::Damages& damages,
                                          const AllocationRow& row, const allocate::Allocation& free,
                                          const MenuNames& names);

/// What one types to have the answer, with indented lines.
std::string what_to_type(const methods::EngineInfo& engine, const allocate::Damages& damages, const AllocationRow& row);

}  // namespace kvbench::app
