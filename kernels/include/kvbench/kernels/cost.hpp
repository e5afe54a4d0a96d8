// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvbench {

/// Declared work of a kernel call: floating point operations (a fused multiply-add counts 2, an exp counts 1) and bytes of
/// operands read and results written once. Additive; tables divide by time to get GF/s and GB/s.
struct Cost {
  double flops = 0;
  double bytes = 0;
  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

}  // namespace kvbench
