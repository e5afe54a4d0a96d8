// SPDX-License-Identifier: Apache-2.0
// The programs whose formats some methods are, and the order of channels in which they store keys.
#pragma once

#include <string_view>

namespace kvbench::methods {

/// The program that deploys a format in which neighbouring channels share a scale or are rotated together, so that
/// their order matters. none: the format belongs to no program, or the order does not matter.
enum class Engine { none, llama_cpp, vllm };
std::string_view name_of(Engine engine);

/// How an engine pairs the channels of queries and keys in models of an architecture (`model_type` of transformers or
/// `general.architecture` of GGUF): "half" or "interleaved", as TraceInfo::rope_layout; "": as the model's code does,
/// which all engines but llama.cpp follow, and llama.cpp for most architectures.
std::string_view rope_layout_in(Engine engine, std::string_view architecture);

}  // namespace kvbench::methods
