// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvbench::llama {

/// Path of an fp32 version of a GGUF model, in ${XDG_CACHE_HOME:-~/.cache}/kvbench. It is converted once and then found
/// by path, size and time of the model. With quantised weights llama.cpp also quantises activations, which changes q, k
/// and v by 1-4 %. Throws Error where the model cannot be converted, IoError where the cache cannot be written.
std::string converted_to_f32(const std::string& model, int threads);

}  // namespace kvbench::llama
