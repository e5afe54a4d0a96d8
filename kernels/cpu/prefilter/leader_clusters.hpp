// SPDX-License-Identifier: Apache-2.0
// The prefilter of leader_clusters.cpp.
#pragma once

#include "../distance_tile.hpp"
#if KVBENCH_WIDTH > 4
#include "int8_leader_clusters.hpp"
#endif

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// The interface, implemented for instruction sets without products of 8-bit integers: every search is left to the
/// caller.
class NoLeaderPrefilter {
 public:
  static constexpr Index kMostPoints = 256;  // of a call

  NoLeaderPrefilter(const LeaderClusters<HostMatrix>&, Context&) {}

  /// Calls f(i, representative, squared distance) for points begin + i, i < points, and those of the first `count`
  /// representatives that may be the nearest: in increasing order for each point, at least one where count > 0.
  /// Representatives must not change once they have been below a count. False where the caller has to search instead; f
  /// has not been called then. points <= kMostPoints.
  template <class F>
  bool find_nearest(Index /*begin*/, Index /*points*/, Index /*count*/, F) {
    return false;
  }
};

#if KVBENCH_WIDTH > 4
using LeaderPrefilter = Int8LeaderPrefilter;
#else
using LeaderPrefilter = NoLeaderPrefilter;
#endif

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
