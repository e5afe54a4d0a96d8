// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kvbench::llama {

class Model;

/// Path of an fp32 copy of a model in the cache (apps/common/model_cache.hpp); `sha256`: its model_sha256()
/// (apps/common/model_files.hpp). With quantised weights llama.cpp also quantises activations, which changes q, k and v
/// by 1-4 %. Throws Error where the model cannot be converted, IoError where the cache cannot be written, Interrupted
/// after a signal.
std::string converted_to_f32(const Model& model, const std::string& sha256, int threads);

}  // namespace kvbench::llama
