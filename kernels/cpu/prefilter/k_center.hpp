// SPDX-License-Identifier: Apache-2.0
// The prefilter of k_center.cpp.
#pragma once

#include "../distance_tile.hpp"
#if KVBENCH_WIDTH > 4
#include "int8_k_center.hpp"
#endif

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// The interface, implemented for instruction sets without products of 8-bit integers: the front is left to the caller.
class NoCentrePrefilter {
 public:
  NoCentrePrefilter(const HostMatrix<const float>& /*points*/, Context&) {}

  /// Takes over the distances of a front: points [count] by their numbers, with their squared distances. False where
  /// the caller has to compute distances instead; otherwise the next two functions may be called until the next hold().
  bool hold(const std::int32_t* /*front*/, const float* /*nearest*/, Index /*count*/) { return false; }

  /// Lowers `nearest` [count] by the squared distances to `centre`.
  void lower(const float* /*centre*/, float* /*nearest*/) {}

  /// Point i of the front has become a centre: its distance is lowered no more.
  void take(Index /*i*/) {}
};

#if KVBENCH_WIDTH > 4
using CentrePrefilter = Int8CentrePrefilter;
#else
using CentrePrefilter = NoCentrePrefilter;
#endif

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
