// SPDX-License-Identifier: Apache-2.0
// The operations on the device: one .cu file per header of include/kvbench/kernels/, queued on the context's stream.
#pragma once

#include <kvbench/kernels/backend.hpp>

#include "context.hpp"

namespace kvbench::kernels::cuda {

/// Queues one operation; arguments are documented at the operation's struct. Launch failures throw std::runtime_error.
template <class Op>
void run(const Op& op, Context& context);

}  // namespace kvbench::kernels::cuda
