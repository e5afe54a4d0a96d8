// SPDX-License-Identifier: Apache-2.0
// The declared work of an operation. Each operation's header defines cost() for it beside its declaration.
#pragma once

#include <kvbench/kernels/buffer.hpp>

namespace kvbench {

/// Declared work of a kernel call: floating point operations (a fused multiply-add counts 2, an exp counts 1) and bytes
/// of operands read and results written once. Additive; tables divide by time to get GF/s and GB/s.
struct Cost {
  double flops = 0;
  double bytes = 0;
  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

namespace kernels {

/// The elements of an operand; 0 where it is absent.
template <class T>
double elements(const Buffer<T>& operand) {
  return static_cast<double>(operand.size());
}

/// The bytes of all operands together.
template <class... T>
double bytes(const Buffer<T>&... operands) {
  return ((elements(operands) * sizeof(T)) + ...);
}

}  // namespace kernels
}  // namespace kvbench
