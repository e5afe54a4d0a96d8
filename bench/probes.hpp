// SPDX-License-Identifier: Apache-2.0
// Peak rates of one thread of this processor, or of the GPU, at this moment: every figure is printed with its share of
// them.
#pragma once

#include <kvbench/kernels/backend.hpp>

namespace kvbench::bench {

double thread_seconds();  ///< CPU time of this thread
double wall_seconds();

/// Fused multiply-adds of fp32 on registers alone, in flops per second (a fused multiply-add counts 2).
double probe_flops(Isa isa);

/// Reading 256 MiB front to back, in bytes per second.
double probe_bandwidth();

/// In flops and bytes per second.
struct Ceilings {
  double flops = 0, bytes = 0;
};
/// The same of the current CUDA device, whole. Throws std::runtime_error where there is none.
Ceilings probe_device();

}  // namespace kvbench::bench
