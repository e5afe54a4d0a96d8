// SPDX-License-Identifier: Apache-2.0
// Which prompts, layers and kv heads of a trace a request means.
#pragma once

#include <algorithm>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// Throws Error where the list has an item twice. Seeds that are counted twice narrow intervals, and equal rows make a
/// table that cannot be read.
template <class T>
void refuse_twice(std::vector<T> list, const char* field) {
  std::ranges::sort(list);
  const auto twice = std::ranges::adjacent_find(list);
  if (twice != list.end()) throw Error("{}: {} is given twice; give it once", field, *twice);
}

/// The heads that the request selects by prompts, layers and kv_heads, in plan order. Throws Error where the trace
/// lacks one of them, or no head is selected.
std::vector<HeadPlace> select_heads(const trace::TraceInfo& trace, const ReplayRequest& request);

}  // namespace kvbench::replay
