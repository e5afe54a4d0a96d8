// SPDX-License-Identifier: Apache-2.0
// The programs that run some methods or whose formats they are, and the order of channels in which they store keys.
#pragma once

#include <string_view>

namespace kvbench::methods {

/// kvpress is a library for transformers, which compresses at the end of the prompt.
enum class Engine { none, llama_cpp, vllm, kvpress, mlx, ik_llama_cpp, exllamav3 };
std::string_view name_of(Engine engine);  ///< "" of none

/// How an engine pairs the channels of queries and keys in models of an architecture (`model_type` of transformers or
/// `general.architecture` of GGUF): "half" or "interleaved", as TraceInfo::rope_layout; "": as the model's code does,
/// which all engines but llama.cpp and its fork follow, and these for most architectures.
std::string_view rope_layout_in(Engine engine, std::string_view architecture);

}  // namespace kvbench::methods
