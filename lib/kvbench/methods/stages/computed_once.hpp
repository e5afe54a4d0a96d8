// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvbench::methods {

/// Returns the value at `key`. Where there is none, stores the result of compute(); nothing is stored where compute()
/// throws.
template <class Map, class F>
typename Map::mapped_type& computed_once(Map& values, const typename Map::key_type& key, F compute) {
  auto found = values.find(key);
  if (found == values.end()) found = values.emplace(key, compute()).first;
  return found->second;
}

}  // namespace kvbench::methods
