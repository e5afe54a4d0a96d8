// SPDX-License-Identifier: Apache-2.0
// What this processor on one thread, or the GPU, can do at this moment: the yardsticks printed beside every figure.
#pragma once

#include <kvbench/kernels/backend.hpp>

namespace kvbench::bench {

double thread_seconds();  ///< CPU time of this thread
double wall_seconds();

/// Fused multiply-adds of fp32 on registers alone, in flops a second (a fused multiply-add counts 2).
double probe_flops(Isa isa);

/// Reading 256 MiB front to back, in bytes a second.
double probe_bandwidth();

/// In flops and bytes a second.
struct Ceilings {
  double flops = 0, bytes = 0;
};
/// The same of the current CUDA device, whole. Throws std::runtime_error where there is none.
Ceilings probe_device();

}  // namespace kvbench::bench
