// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace kvbench {

/// A map whose elements stay in the order in which their keys were first used.
template <class Key, class Value>
class OrderedMap {
 public:
  /// The value of the key; a default value where the key is new.
  Value& operator[](const Key& key) {
    const auto [known, fresh] = index_.try_emplace(key, items_.size());
    if (fresh) items_.emplace_back(key, Value{});
    return items_[known->second].second;
  }

  /// nullptr where the key is new.
  Value* find(const Key& key) {
    const auto known = index_.find(key);
    return known == index_.end() ? nullptr : &items_[known->second].second;
  }

  const std::vector<std::pair<Key, Value>>& items() const { return items_; }
  std::vector<std::pair<Key, Value>>& items() { return items_; }

 private:
  std::map<Key, std::size_t> index_;
  std::vector<std::pair<Key, Value>> items_;
};

}  // namespace kvbench
