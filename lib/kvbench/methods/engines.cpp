// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/engines.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <kvbench/core/name.hpp>
#include <kvbench/methods/find_method.hpp>

namespace kvbench::methods {
namespace {

struct Setting {
  std::string method;  ///< with its parameters, as on the command line
  Engine engine;
  std::string setting;
  std::string models;  ///< that it is for; empty: all
  bool named = true;   ///< the name of the engine stands for it
};

/// What stands in a setting where a press is told the share of the tokens that it drops.
constexpr std::string_view ratio_place = "{ratio}";

/// What CUDA takes for a pair of types in llama.cpp, behind its flags.
std::string_view on_cuda(std::string_view keys, std::string_view values) {
  if (keys == "iq4_nl" || values == "iq4_nl") return " (CUDA has no kernel of iq4_nl)";
  return keys == values && (keys == "q8_0" || keys == "q4_0") ? "" : " (on CUDA built with GGML_CUDA_FA_ALL_QUANTS)";
}

/// llama.cpp, tools/server/README.md (--cache-type-k, --cache-type-v). It rotates channels where it can (#21038).
/// Values in fewer bits take flash attention. That of the processor reads any pair of types: it multiplies queries with
/// keys of each type, and decodes values of each (ggml-cpu/ops.cpp). Its kernels for CUDA are of pairs of types:
/// ggml/CMakeLists.txt and ggml-cuda/fattn.cu of 5a4d0feca (#28079, September 2026) build q4_0-q4_0, q8_0-q8_0, f16-f16
/// and bf16-bf16, as earlier versions do, and with the option all pairs of these and q4_1, q5_0, q5_1. Without a kernel
/// earlier versions compute on the processor, later ones in f16. GGML_CUDA_FA_QUANTS=K-V names single pairs there, and
/// the option is another name of GGML_CUDA_FA_QUANTS=all. No version has a kernel of iq4_nl. Vulkan has kernels of the
/// pairs that CUDA has with the option (ggml-vulkan.cpp of 000651caa), Metal of equal types (ggml-metal-device.m of
/// 003a32eb9), and both refuse other pairs.
void add_llama(std::vector<Setting>& table) {
  using Pair = std::pair<std::string_view, std::string_view>;
  constexpr std::string_view types[] = {"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"};
  std::vector<Pair> pairs = {{"q8_0", "q8_0"},   {"q8_0", "q5_1"}, {"q8_0", "q5_0"}, {"q8_0", "q4_1"},
                             {"q8_0", "q4_0"},   {"q5_1", "q5_1"}, {"q5_1", "q4_0"}, {"q5_0", "q5_0"},
                             {"q5_0", "q4_0"},   {"q4_1", "q4_1"}, {"q4_0", "q4_0"}, {"iq4_nl", "iq4_nl"},
                             {"q8_0", "iq4_nl"}, {"q4_0", "q8_0"}, {"q5_1", "q8_0"}};
  const std::size_t named = pairs.size();
  for (const std::string_view keys : types) {
    for (const std::string_view values : types) {
      if (std::ranges::find(pairs, Pair(keys, values)) == pairs.end()) pairs.emplace_back(keys, values);
    }
  }
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const auto [keys, values] = pairs[p];
    const std::string flags =
        fmt::format("--cache-type-k {} --cache-type-v {} -fa on{}", keys, values, on_cuda(keys, values));
    const std::string own = keys == values ? "" : fmt::format(",values={}", values);
    for (const bool processor : {false, true}) {  // whose flash attention rounds queries
      const std::string with = own + (processor ? ",queries=q8_0" : "");
      const std::string where = flags + (processor ? " (on processors)" : "");
      table.push_back(
          {fmt::format("{}[hadamard=true{}]", keys, with), Engine::llama_cpp, where, "", !processor && p < named});
      table.push_back({fmt::format("{}[hadamard=false{}]", keys, with), Engine::llama_cpp, where,
                       "head dimensions that are no multiple of 64", false});
    }
  }
}

/// All rows, read in November 2026. vLLM: docs/features/quantization/quantized_kvcache.md, and its page about
/// TurboQuant of May 2026. mlx-lm 0.32: maybe_quantize_kv_cache(), which rounds a block of the prompt after it was
/// read. ik_llama.cpp 8337e4cd: docs/parameters.md; the pairs for which its CUDA kernels are built
/// (ggml-cuda/fattn-vec-f16.cu). kvpress 0.5.5, as tests/kvpress_test.py compares it; it compresses at the end of the
/// prompt alone.
const std::vector<Setting>& table() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> rows;
    add_llama(rows);
    const auto add = [&](const char* method, Engine engine, const char* setting) {
      rows.push_back({method, engine, setting, ""});
    };
    add("fp8", Engine::vllm, "--kv-cache-dtype fp8");
    add("fp8[form=e5m2]", Engine::vllm, "--kv-cache-dtype fp8_e5m2");
    add("fp8[scale=token-head]", Engine::vllm, "--kv-cache-dtype fp8_per_token_head");
    add("int4[group=0,form=vllm]", Engine::vllm, "--kv-cache-dtype int4_per_token_head");
    add("int8[group=0,form=vllm]", Engine::vllm, "--kv-cache-dtype int8_per_token_head");
    rows.push_back({"int8[group=0,form=vllm-cut]", Engine::vllm, "--kv-cache-dtype int8_per_token_head",
                    "versions before #45361 of June 2026", false});
    add("turboquant@vllm", Engine::vllm, "--kv-cache-dtype turboquant_4bit_nc");
    add("turboquant@vllm[preset=fp8/4]", Engine::vllm, "--kv-cache-dtype turboquant_k8v4");
    add("turboquant@vllm[preset=3/4]", Engine::vllm, "--kv-cache-dtype turboquant_k3v4_nc");
    add("turboquant@vllm[preset=3/3]", Engine::vllm, "--kv-cache-dtype turboquant_3bit_nc");
    for (const int bits : {4, 8}) {
      for (const int group : {64, 32, 128}) {
        rows.push_back({fmt::format("int{}[group={},form=mlx]", bits, group), Engine::mlx,
                        fmt::format("--kv-bits {} --kv-group-size {} --quantized-kv-start 0", bits, group),
                        fmt::format("head dimensions that are multiples of {}", group), group == 64});
      }
    }
    for (const auto& [keys, values, own] : {std::tuple{"q6_0", "q6_0", ""},
                                            {"q8_0", "q6_0", ",values=q6_0"},
                                            {"q6_0", "q5_0", ",values=q5_0"},
                                            {"q4_0", "q4_0", ",form=ik"}}) {
      const std::string flags = fmt::format("-ctk {} -ctv {} -fa on", keys, values);
      rows.push_back({fmt::format("{}[hadamard=false{}]", keys, own), Engine::ik_llama_cpp, flags, "", false});
      rows.push_back({fmt::format("{}[hadamard=true{}]", keys, own), Engine::ik_llama_cpp, flags + " -khad -vhad",
                      "heads of 64 channels", false});
    }
    add("sink[reposition=false]", Engine::kvpress, "StreamingLLMPress({ratio})");
    add("snapkv@kvpress", Engine::kvpress, "SnapKVPress({ratio})");
    add("adakv@kvpress(snapkv@kvpress)", Engine::kvpress,
        "AdaKVPress(SnapKVPress({ratio})) (masks tokens, and saves no memory)");
    add("knorm", Engine::kvpress, "KnormPress({ratio})");
    add("keydiff", Engine::kvpress, "KeyDiffPress({ratio})");
    add("keydiff[block=128]", Engine::kvpress, "BlockPress(KeyDiffPress({ratio}), block_size=128)");
    add("curdkv", Engine::kvpress, "CURPress({ratio})");
    add("tova@kvpress", Engine::kvpress, "TOVAPress({ratio})");
    add("lagkv@kvpress", Engine::kvpress, "LagKVPress({ratio})");
    add("expected-attention", Engine::kvpress, "ExpectedAttentionPress({ratio})");
    return rows;
  }();
  return all;
}

MethodSettings settings_of(const Setting& row) {
  const MethodName name = *parse_method_text(row.method);
  return {&find_method(name), name.assignments()};
}

/// The fewest digits of a ratio r with int(tokens (1 - r)) = int(kept), as kvpress counts in fp64; "R" where none has,
/// and for rows that have no results.
std::string ratio_text(double kept, double tokens) {
  if (!(kept > 0)) return "R";
  const double middle = std::max(0.0, 1 - (std::floor(kept) + 0.5) / tokens);
  for (int digits = 0; digits < 9; ++digits) {
    const double unit = std::pow(10, digits), ratio = std::round(middle * unit) / unit;
    if (std::floor(tokens * (1 - ratio)) == std::floor(kept)) return fmt::format("{:.{}f}", ratio, digits);
  }
  return "R";
}

}  // namespace

std::string runs_in(std::string_view method, std::string_view params, double kept, double tokens) {
  using Name = std::pair<std::string, std::string>;
  static const std::map<Name, std::string, std::less<>> known = [] {
    std::map<Name, std::string, std::less<>> texts;
    for (const Setting& row : table()) {
      const auto [info, settings] = settings_of(row);
      std::string& text = texts[{info->name, info->bind(settings).text()}];
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name_of(row.engine), row.setting);
      if (!row.models.empty()) text += fmt::format(" ({})", row.models);
    }
    return texts;
  }();
  auto [name, own_params] = shown_by(method);
  const auto found = known.find(Name(std::move(name), params.empty() ? std::move(own_params) : std::string(params)));
  if (found == known.end()) return "";
  std::string text = found->second;
  const std::string ratio = "compression_ratio=" + ratio_text(kept, tokens);
  for (std::size_t at; (at = text.find(ratio_place)) != std::string::npos;) text.replace(at, ratio_place.size(), ratio);
  return text;
}

std::string setting_in(std::string_view engine, std::string_view method, std::string_view params) {
  for (const Setting& row : table()) {
    if (!same_name(name_of(row.engine), engine)) continue;
    const auto [info, settings] = settings_of(row);
    if (info->name != method || info->bind(settings).text() != params) continue;
    const std::size_t at = row.setting.find(ratio_place);
    return at == std::string::npos ? row.setting : std::string(row.setting).erase(at, ratio_place.size());
  }
  return "";
}

std::vector<MethodSettings> rows_of_engine(std::string_view engine) {
  std::vector<MethodSettings> rows;
  for (const Setting& row : table()) {
    if (same_name(name_of(row.engine), engine) && row.named) rows.push_back(settings_of(row));
  }
  return rows;
}

}  // namespace kvbench::methods
