// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvbench::kvdump {

/// Path of an fp32 version of a GGUF model, in ${XDG_CACHE_HOME:-~/.cache}/kvbench: made once, then found again by the model's
/// path, size and time. With quantised weights llama.cpp quantises the activations too, which moves q, k and v by 1-4 %.
/// Throws Error where the model cannot be converted, IoError where the cache cannot be written.
std::string converted_to_f32(const std::string& model, int threads);

}  // namespace kvbench::kvdump
