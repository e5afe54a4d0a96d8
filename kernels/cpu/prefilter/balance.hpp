// SPDX-License-Identifier: Apache-2.0
// The prefilter of balance.cpp.
#pragma once

#include "../block_walk.hpp"
#if KVBENCH_WIDTH > 4
#include "int8_balance.hpp"
#endif

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// The interface, implemented for instruction sets without products of 8-bit integers: it settles no sign.
class NoWalkPrefilter {
 public:
  NoWalkPrefilter(const Walk&, Context&) {}

  /// The block of the following calls, which must stay until the next one starts.
  void start(const BlockWalk&) {}

  /// Clears needs_sums[s] where the kernel sums of strip s cannot change any of its signs. The strips are those of
  /// `count` rows from `group` on; groups of a block come in increasing order.
  void find_settled(Index /*group*/, Index /*count*/, bool* /*needs_sums*/) {}
};

#if KVBENCH_WIDTH > 4
using WalkPrefilter = Int8WalkPrefilter;
#else
using WalkPrefilter = NoWalkPrefilter;
#endif

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
