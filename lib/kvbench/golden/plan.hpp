// SPDX-License-Identifier: Apache-2.0
// Which rows are golden: the methods, their budgets, and the places of the bundled trace.
#pragma once

#include <span>
#include <vector>

#include <kvbench/replay/plan/request.hpp>

namespace kvbench::golden {

/// A method that has golden rows, and what is replayed in its place: itself, or a port of it.
struct Method {
  replay::MethodChoice named, replayed;
};

/// The rows of `--method all` and those that it leaves out, in the order of the registry.
std::vector<Method> golden_methods();

/// Whether a kv head of the bundled trace has golden rows of a method: the second of three only where the heads of a
/// layer affect each other.
bool has_rows(const replay::MethodChoice& method, Index kv_head);

/// The replays whose configurations are the golden rows of these methods, with the same configurations in each.
std::vector<replay::ReplayRequest> golden_requests(std::span<const Method> methods);

}  // namespace kvbench::golden
