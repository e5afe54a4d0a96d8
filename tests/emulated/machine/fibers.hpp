// SPDX-License-Identifier: Apache-2.0
// Fibers: stacks that are suspended and resumed.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>

namespace emulated {

/// A suspended stack; empty while it runs.
using Fiber = boost::context::fiber;

/// Where the next switch stores the stack that it suspends.
inline Fiber* suspended = nullptr;

/// Suspends the running stack in `here` and resumes `to`; returns when `here` is resumed.
inline void switch_to(Fiber& to, Fiber& here) {
  suspended = &here;
  Fiber from = std::move(to).resume();
  *suspended = std::move(from);
}

/// Allocates stacks that are never freed, because workers are reused. Their size is no power of two, so that their tops
/// do not compete for the same cache lines.
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
