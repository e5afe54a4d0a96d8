// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <apps/llama/layer_capture.hpp>

namespace kvbench::kvdump {

using llama::LayerCapture, llama::LayerParameters;

/// Measured error with an fp32 cache and without flash attention: 2e-6. A wrong node, stride, mask or scale gives at
/// least 1e-2.
inline constexpr double check_tolerance = 1e-5;

/// Relative error of the attention over the captured q, k, v of one query head against the output of the model:
/// sqrt(sum |z - z_model|^2 / sum |z_model|^2) over all stored queries. NaN where a value is NaN.
double output_error(const LayerCapture& capture, std::int64_t query_head);

}  // namespace kvbench::kvdump
