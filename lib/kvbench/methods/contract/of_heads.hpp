// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kvbench::methods {

/// What the heads of a layer bring one by one in a phase of a step.
template <class T>
class OfHeads {
 public:
  explicit OfHeads(std::size_t heads) : parts_(heads) {}

  /// Adds the part of a head, and returns whether it was the last one. The first part after the last begins anew.
  bool add(std::size_t head, T part) {
    if (complete()) clear();
    if (parts_.at(head)) throw std::logic_error("a head of a layer comes twice before the others have come");
    parts_[head] = std::move(part);
    return ++count_ == parts_.size();
  }
  bool complete() const { return count_ == parts_.size(); }
  /// By head. Throws std::logic_error where one is missing.
  std::vector<T> all() const {
    if (!complete()) throw std::logic_error("a head of a layer is asked before all others have come");
    std::vector<T> out;
    for (const std::optional<T>& part : parts_) out.push_back(*part);
    return out;
  }
  void clear() {
    count_ = 0;
    for (std::optional<T>& part : parts_) part.reset();
  }

 private:
  std::vector<std::optional<T>> parts_;  ///< by head
  std::size_t count_ = 0;
};

}  // namespace kvbench::methods
