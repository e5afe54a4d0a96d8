// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/engine.hpp>

#include <algorithm>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::methods {
namespace {

/// Architectures whose code pairs halves, and whose weights llama.cpp's converter permutes into neighbouring pairs:
/// permute() in convert_hf_to_gguf.py, LLAMA_ROPE_TYPE_NORM in llama_model_rope_type(). The others are in llama.cpp as
/// in their code.
constexpr std::string_view permuted[] = {
    "arcee",     "baichuan",  "deci",  "granite", "granitehybrid", "granitemoe", "granitemoehybrid", "granitemoeshared",
    "internlm2", "internlm3", "llama", "minicpm", "ministral3",    "mistral",    "mistral3",         "mixtral",
    "olmo",      "smollm3",   "xverse"};

}  // namespace

std::string_view name_of(Engine engine) {
  constexpr std::string_view names[] = {"", "llama.cpp", "vLLM", "kvpress", "mlx-lm", "ik_llama.cpp", "exllamav3"};
  return name_in(names, engine);
}

std::string_view rope_layout_in(Engine engine, std::string_view architecture) {
  if (engine == Engine::none || std::ranges::find(permuted, architecture) == std::end(permuted)) return "";
  return engine == Engine::llama_cpp || engine == Engine::ik_llama_cpp ? "interleaved" : "half";
}

}  // namespace kvbench::methods
