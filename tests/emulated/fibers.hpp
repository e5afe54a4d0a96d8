// SPDX-License-Identifier: Apache-2.0
// Stacks that take turns, each going on where it was left.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>

namespace emulated {

/// A place to go on at; empty while it runs.
using Place = boost::context::fiber;

/// Where the running stack is left by the next switch.
inline Place* leaving = nullptr;

/// Leaves the running stack at `here` and goes on at `to`; returns when somebody switches to `here`.
inline void switch_to(Place& to, Place& here) {
  leaving = &here;
  Place from = std::move(to).resume();
  *leaving = std::move(from);
}

/// Hands out stacks that are never given back: workers are used again. Their size is no power of two, or the tops of all of
/// them would compete for the same lines of the cache.
class Stacks {
 public:
  static constexpr std::size_t size = 32 * 1024 + 320;
  using traits_type = boost::context::stack_traits;

  boost::context::stack_context allocate() {
    constexpr std::size_t at_once = 64;
    if (slabs().empty() || used() == at_once) {
      slabs().push_back(std::make_unique<std::byte[]>(at_once * size));
      used() = 0;
    }
    boost::context::stack_context stack;
    stack.size = size;
    stack.sp = slabs().back().get() + ++used() * size;
    return stack;
  }
  void deallocate(boost::context::stack_context&) noexcept {}

 private:
  static std::vector<std::unique_ptr<std::byte[]>>& slabs() {
    static auto* all = new std::vector<std::unique_ptr<std::byte[]>>;  // outlives the workers
    return *all;
  }
  static std::size_t& used() {
    static std::size_t count = 0;
    return count;
  }
};

}  // namespace emulated
