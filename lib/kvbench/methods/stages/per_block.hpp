// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <kvbench/methods/contract/inputs.hpp>

namespace kvbench::methods {

/// A value that depends only on the queries of a block and on the tokens so far, such as the scores by which a method
/// selects: the caches of all budgets of a head compute it once. Holds the value of the last block, and its queries, so
/// that no later block can have the same storage.
template <class T>
class PerBlock {
 public:
  template <class F>
  const T& of(const QueryBlock& block, Index tokens, F compute) {
    if (!value_ || tokens_ != tokens || !queries_.same_as(block.queries)) {
      value_.reset();
      value_ = compute();
      queries_ = block.queries;
      tokens_ = tokens;
    }
    return *value_;
  }

 private:
  std::optional<T> value_;
  Buffer<const float> queries_;
  Index tokens_ = 0;
};

/// Returns the value at `key`. Where there is none, stores the result of compute(); nothing is stored where compute()
/// throws.
template <class Map, class F>
typename Map::mapped_type& computed_once(Map& values, const typename Map::key_type& key, F compute) {
  auto found = values.find(key);
  if (found == values.end()) found = values.emplace(key, compute()).first;
  return found->second;
}

}  // namespace kvbench::methods
