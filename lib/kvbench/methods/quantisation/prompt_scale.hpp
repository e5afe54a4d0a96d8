// SPDX-License-Identifier: Apache-2.0
// The scale of whole arrays, which a codec takes from a prompt and keeps while tokens are decoded.
#pragma once

#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

/// max |x| / peak over the numbers of all arrays, passing over NaN; 1 where there are none or all are 0.
float prompt_scale(const std::vector<Buffer<const float>>& arrays, float peak, Backend& backend);

}  // namespace kvbench::methods
