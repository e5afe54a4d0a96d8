// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/engines.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/find_method.hpp>

namespace kvbench::methods {
namespace {

/// llama.cpp: see add_llama(). ik_llama.cpp: common/common.cpp (-ctk-first TYPE,N) and src/llama.cpp, which counts all
/// layers of a model. vLLM: CacheConfig.kv_cache_dtype_skip_layers, which takes numbers of layers, and `sliding_window`
/// for those with a window. kvpress: presses/per_layer_compression_press.py, which takes presses that score tokens.
constexpr EngineInfo known_engines[] = {
    {Engine::llama_cpp, "5a4d0feca of September 2026", Shape::equal,
     "has one type of keys and one of values in all layers", "llama-server -m MODEL.gguf"},
    {Engine::mlx, "0.32", Shape::equal, "has one number of bits in all layers",
     "mlx_lm.generate --model MODEL --prompt TEXT"},
    {Engine::exllamav3, "4f8ad01 of August 2026", Shape::equal,
     "has one number of bits for keys and one for values in all layers", "python examples/chat.py -m MODEL"},
    {Engine::ik_llama_cpp, "8337e4cd of August 2026", Shape::ends,
     "can give the first and the last layers other types than the rest", "llama-server -m MODEL.gguf -fa on"},
    {Engine::vllm, "0.21", Shape::whole, "can leave layers in the type of the model, and has one format for the rest",
     "vllm serve MODEL"},
    {Engine::kvpress, "0.5.5", Shape::shares, "can keep another share of the tokens in each layer, with one press", ""},
};

using Heads = std::function<bool(Index)>;  ///< whether this holds for heads of so many channels
bool always(Index) { return true; }
bool never(Index) { return false; }
bool is_turned(Index channels) { return channels % 64 == 0; }  ///< by llama.cpp
bool is_not_turned(Index channels) { return !is_turned(channels); }
Heads filled_by(Index group) {
  return [group](Index channels) { return channels % group == 0; };
}

struct Setting {
  std::string method;  ///< with its parameters, as on the command line
  Engine engine;
  std::string setting;
  std::string models;    ///< that it is for; empty: all, or as most of them
  Heads has = always;    ///< the engine computes this
  Heads named = always;  ///< where it has it, the name of the engine stands for it
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
      const Heads is_named = !processor && p < named ? always : never;
      table.push_back(
          {fmt::format("{}[hadamard=true{}]", keys, with), Engine::llama_cpp, where, "", is_turned, is_named});
      table.push_back({fmt::format("{}[hadamard=false{}]", keys, with), Engine::llama_cpp, where,
                       "head dimensions that are no multiple of 64", is_not_turned, is_named});
    }
  }
}

/// ik_llama.cpp 8337e4cd, docs/parameters.md: the types that kvbench has. Its CUDA kernels are built for q6_0-q6_0,
/// q8_0-q6_0, q6_0-q5_0 and q4_0-q4_0 (ggml-cuda/fattn-vec-f16.cu). Its iq4_nl chooses another scale (ggml-quants.c);
/// q8_KV is for keys alone, as a row of values spans all heads (src/llama.cpp); CUDA has no kernel of it. Its rotation
/// (-khad -vhad) spans a whole head; that of llama.cpp, which kvbench has, 64 channels of values.
void add_ik_llama(std::vector<Setting>& table) {
  constexpr std::pair<std::string_view, std::string_view> pairs[] = {
      {"q8_KV", "q8_0"}, {"q8_KV", "q6_0"}, {"q8_0", "q8_0"}, {"q8_0", "q6_0"}, {"q8_0", "q5_1"},
      {"q8_0", "q5_0"},  {"q8_0", "q4_1"},  {"q6_0", "q6_0"}, {"q6_0", "q5_0"}, {"q5_1", "q5_1"},
      {"q5_0", "q5_0"},  {"q4_1", "q4_1"},  {"q4_0", "q4_0"}};
  for (const auto& [keys, values] : pairs) {
    const bool rows = keys == "q8_KV";
    const std::string_view method = rows ? "q8_0" : keys;
    std::string own = values == method ? "" : fmt::format(",values={}", values);
    if (rows) own += ",form=kv";
    if (keys == "q4_0") own += ",form=ik";
    const std::string flags = fmt::format("-ctk {} -ctv {} -fa on", keys, values);
    table.push_back({fmt::format("{}[hadamard=false{}]", method, own), Engine::ik_llama_cpp, flags,
                     rows ? "on processors" : "", [](Index channels) { return channels != 64; }});
    table.push_back({fmt::format("{}[hadamard=true{}]", method, own), Engine::ik_llama_cpp, flags + " -khad -vhad",
                     rows ? "heads of 64 channels, on processors" : "heads of 64 channels",
                     [](Index channels) { return channels == 64; }});
  }
}

/// All rows, read in November 2026. vLLM: docs/features/quantization/quantized_kvcache.md, and its page about
/// TurboQuant of May 2026. mlx-lm 0.32: maybe_quantize_kv_cache(), which rounds a block of the prompt after it was
/// read. kvpress 0.5.5, as tests/kvpress_test.py compares it; it compresses at the end of the prompt alone.
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
                    "versions before #45361 of June 2026", never});
    add("turboquant@vllm", Engine::vllm, "--kv-cache-dtype turboquant_4bit_nc");
    add("turboquant@vllm[preset=fp8/4]", Engine::vllm, "--kv-cache-dtype turboquant_k8v4");
    add("turboquant@vllm[preset=3/4]", Engine::vllm, "--kv-cache-dtype turboquant_k3v4_nc");
    add("turboquant@vllm[preset=3/3]", Engine::vllm, "--kv-cache-dtype turboquant_3bit_nc");
    for (const int bits : {4, 8}) {
      for (const int group : {64, 32, 128}) {
        rows.push_back({fmt::format("int{}[group={},form=mlx]", bits, group), Engine::mlx,
                        fmt::format("--kv-bits {} --kv-group-size {} --quantized-kv-start 0", bits, group),
                        fmt::format("head dimensions that are multiples of {}", group), filled_by(group),
                        group == 64   ? Heads(always)
                        : group == 32 ? Heads(is_not_turned)
                                      : Heads(never)});
      }
    }
    add_ik_llama(rows);
    for (const int keys : {8, 7, 6, 5, 4, 3, 2}) {  // exllamav3/model_init.py
      for (const int values : {8, 7, 6, 5, 4, 3, 2}) {
        const bool same = keys == values;
        rows.push_back(
            {fmt::format("int[bits={}{},form=exl3]", keys, same ? "" : fmt::format(",value_bits={}", values)),
             Engine::exllamav3, same ? fmt::format("-cq {}", keys) : fmt::format("-cq {},{}", keys, values), "",
             filled_by(32), same || (keys == 8 && values == 4) ? Heads(always) : Heads(never)});
      }
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

/// The row of an engine for a method, which texts name as rows of results do; nullptr: there is none.
const Setting* find_row(Engine engine, std::string_view method, std::string_view params) {
  for (const Setting& row : table()) {
    if (row.engine != engine) continue;
    const auto [info, settings] = settings_of(row);
    if (info->name == method && info->bind(settings).text() == params) return &row;
  }
  return nullptr;
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

std::span<const EngineInfo> engines() { return known_engines; }

std::string engine_names() {
  return fmt::format("{}", fmt::join(known_engines | std::views::transform(&EngineInfo::name), ", "));
}

const EngineInfo* find_engine(std::string_view name) {
  const auto is = [&](const EngineInfo& one) { return same_name(one.name(), name); };
  const auto* const found = std::ranges::find_if(known_engines, is);
  return found == std::end(known_engines) ? nullptr : found;
}

const EngineInfo& engine_of_flag(std::string_view flag, std::string_view name) {
  if (const EngineInfo* found = find_engine(name)) return *found;
  throw Error("{} '{}': is none of the engines that kvbench knows: {}", flag, name, engine_names());
}

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

std::string setting_in(Engine engine, std::string_view method, std::string_view params, std::optional<Index> channels) {
  const Setting* row = find_row(engine, method, params);
  if (row == nullptr || (channels && !row->has(*channels))) return "";
  const std::size_t at = row->setting.find(ratio_place);
  return at == std::string::npos ? row->setting : std::string(row->setting).erase(at, ratio_place.size());
}

std::vector<MethodSettings> rows_of_engine(Engine engine, Index channels) {
  std::vector<MethodSettings> rows;
  for (const Setting& row : table()) {
    if (row.engine == engine && row.has(channels) && row.named(channels)) rows.push_back(settings_of(row));
  }
  return rows;
}

}  // namespace kvbench::methods
