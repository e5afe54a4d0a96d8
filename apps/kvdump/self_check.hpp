// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "layer_capture.hpp"

namespace kvbench::kvdump {

/// Measured with an fp32 cache and without flash attention: 2e-6; a wrong node, stride, mask or scale gives 1e-2 and more.
inline constexpr double check_tolerance = 1e-5;

/// Attention recomputed from the captured q, k, v of one query head against the model's own output:
/// sqrt(sum |z - z_model|^2 / sum |z_model|^2) over all stored queries. NaN where a value is NaN.
double output_error(const LayerCapture& capture, std::int64_t query_head);

}  // namespace kvbench::kvdump
