// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <kvbench/methods/engines.hpp>
#include <kvbench/methods/find_method.hpp>
#include <kvbench/methods/sets.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

TEST_CASE("names and aliases are unique, lower case and found") {
  std::set<std::string> seen;
  for (const MethodInfo& method : all_methods()) {
    std::vector<std::string> names = method.aliases;
    names.push_back(method.name);
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(seen.insert(name).second);
      // METHOD@SYSTEM is the method as a system's released code has it.
      CHECK(std::ranges::count(name, '@') <= 1);
      CHECK(std::ranges::all_of(name, [](char c) {
        return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-' || c == '_' || c == '@';
      }));
      CHECK(&find_method(name) == &method);
      std::string upper = name;
      std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
      CHECK(&find_method(upper) == &method);
    }
  }
}

TEST_CASE("integers beyond 32 bits are refused wherever a parameter is one") {
  for (const MethodInfo& method : all_methods()) {
    for (const ParamSpec& param : method.params) {
      if (param.type != "integer") continue;
      for (const char* value : {"9223372036854775807", "4611686018427387904", "2147483648", "-9223372036854775808"}) {
        CAPTURE(method.name);
        CAPTURE(param.name);
        CAPTURE(value);
        CHECK_THROWS_AS(method.bind(std::vector<Assignment>{{param.name, value}}), Error);
      }
    }
  }
}

TEST_CASE("every row has a description, parameters and functions") {
  for (const MethodInfo& method : all_methods()) {
    CAPTURE(method.name);
    CHECK_FALSE(method.paper.empty());
    CHECK_FALSE(method.summary.empty());
    CHECK_FALSE(method.notes.empty());
    CHECK_FALSE(method.complexity.compress.text.empty());
    CHECK_FALSE(method.complexity.query.text.empty());
    CHECK_FALSE(method.complexity.memory.text.empty());
    CHECK(method.bind != nullptr);
    CHECK(method.prepare != nullptr);
    CHECK((method.independent_heads == nullptr || method.granularity == Granularity::layer));
    CHECK((method.granularity == Granularity::model) <= (method.plan != nullptr));
    CHECK((method.score_of_head != nullptr) <= (method.plan && method.calibrates()));
    for (const ParamSpec& param : method.params) {
      CAPTURE(param.name);
      CHECK_FALSE(param.doc.empty());
      // Parsing accepts the default that help shows, and the text of the parameters remains empty.
      CHECK(method.bind(std::vector<Assignment>{{param.name, param.default_value}}).text().empty());
    }
  }
}

TEST_CASE("all replays every method with its defaults, and variants that differ from them") {
  std::set<std::string> seen;
  for (const auto& [info, settings] : rows_of_set("all")) {
    const std::string text = info->bind(settings).text();
    CHECK(text.empty() == settings.empty());
    CHECK(seen.insert(info->name + "[" + text + "]").second);
  }
  for (const char* released : {"h2o[per=query_head]", "snapkv[per=query_head]", "pyramidkv[per=query_head]"})
    CHECK(seen.contains(released));
}

TEST_CASE("an unknown method is reported with the nearest name") {
  CHECK_THROWS_WITH_AS(find_method("snapvk"), doctest::Contains("snapkv"), Error);
  CHECK_THROWS_WITH_AS(find_method("xyzzy"), doctest::Contains("kvbench methods"), Error);
  CHECK(find_method("streamingllm").name == "sink");
}

TEST_CASE("the pool of a score has a middle") {
  for (const std::string method : {"snapkv", "pyramidkv", "rocketkv", "r-kv"}) {
    CHECK_THROWS_WITH_AS(find_method(method).bind(std::vector<Assignment>{{"kernel", "4"}}),
                         ("parameter '" + method + ".kernel' is 4; it must be odd").c_str(), Error);
  }
}

TEST_CASE("exponents agree with the formulas of the same row") {
  for (const MethodInfo& method : all_methods()) {
    CAPTURE(method.name);
    const Complexity& cost = method.complexity;
    // The work of the default settings, which precedes that of other settings.
    const std::string compress = cost.compress.text.substr(0, cost.compress.text.find(';'));
    const bool linear = compress.find('n') != std::string::npos,
               proportional = compress.find("C = n") != std::string::npos;
    const double squared = compress.find("n^2") != std::string::npos || proportional ? 2 : linear ? 1 : 0;
    CHECK(cost.compress.growth == squared);
    CHECK((cost.memory.growth == 1) == (cost.memory.text.starts_with("n ")));
  }
}

TEST_CASE("methods whose work can grow with the square of the context are infeasible above their limit") {
  const auto backend = make_cpu_backend(Isa::scalar);
  const HeadData head = random_head({.n = 64, .d = 8, .dv = 8}, 1, *backend);
  // Pairs at a budget of 32 of 64 tokens with the settings given: attention-matching 3 * 64 queries * 64 tokens, twice;
  // bsm 32 * 32 of the middle; clusterkv 300 * 64 * 4; clusterkv-repo 20 * 64 * 8; kmeans 10 * 64 * 32; mesh and r-kv
  // 64^2; retroinfer 64 * 4 in 9 iterations and the last step; subgen-kcenter k = 16 of 48 candidates; subgen 10 * 64 *
  // m', m' = 6 clusters of 1 + 4 keys beside 16 slots of key and value; wildcat 64 * 12 in two bins, each at
  // the cost of d + 12 products.
  const std::map<std::string, std::pair<double, std::vector<Assignment>>> pairs = {
      {"attention-matching", {64 * 3 * 64 * 2, {}}},
      {"bsm", {32 * 32, {{"sinks", "0"}, {"recent", "0"}}}},
      {"clusterkv", {300 * 64 * 4, {{"sinks", "0"}, {"clusters", "4"}}}},
      {"clusterkv-repo", {20 * 64 * 8, {{"sinks", "0"}, {"clusters", "8"}}}},
      {"kmeans", {10 * 64 * 32, {}}},
      {"r-kv", {64 * 64, {}}},
      {"retroinfer", {64 * 4 * (9 + 1), {{"sinks", "0"}, {"window", "0"}}}},
      {"mesh", {64 * 64, {{"sinks", "0"}, {"recent", "0"}}}},
      {"subgen", {10 * 64 * 6, {}}},
      {"subgen-kcenter", {48 * 16, {}}},
      {"wildcat", {64 * 12 + 64 * 12 * 12 / 8, {{"sinks", "0"}, {"recent", "0"}}}}};
  for (const MethodInfo& method : all_methods()) {
    CAPTURE(method.name);
    const bool limited = std::ranges::any_of(method.params, [](const ParamSpec& p) { return p.name == "max_pairs"; });
    REQUIRE(limited == pairs.contains(method.name));
    if (!limited) continue;
    auto [most, settings] = pairs.at(method.name);
    settings.push_back({"max_pairs", fmt::format("{}", most)});
    CHECK_NOTHROW(open_cache(method.name, settings, prompt_of(head, *backend), 32, 0, *backend));
    settings.back().value = fmt::format("{}", most - 1);
    CHECK_THROWS_AS(open_cache(method.name, settings, prompt_of(head, *backend), 32, 0, *backend), Infeasible);
  }
}

TEST_CASE("formats with blocks of channels have the order of their engine") {
  struct Case {
    const char *method, *architecture, *order;
  };
  const Case cases[] = {{"q4_0", "llama", "interleaved"},
                        {"snapkv+q5_1", "mistral", "interleaved"},
                        {"nvfp4", "llama", "half"},
                        {"adakv(snapkv)+nvfp4", "granite", "half"},
                        {"turboquant@vllm", "llama", ""},
                        {"q8_0", "qwen2", ""},
                        {"nvfp4", "cohere", ""},
                        {"q4_1", "", ""},
                        {"int4", "llama", ""},
                        {"snapkv", "llama", ""},
                        {"snapkv+kivi4", "llama", ""},
                        {"exact", "llama", ""}};
  for (const auto& [method, architecture, order] : cases) {
    CAPTURE(method);
    CHECK(rope_layout_in(find_method(method).engine, architecture) == order);
  }
  for (const MethodInfo& method : all_methods())
    CHECK((method.engine == Engine::none || method.kind == Kind::quantisation));
}

namespace {

/// What a user writes, as rows print it: runs_in() of "q8_0[values=q4_0]".
std::string where(std::string_view method, std::vector<Assignment> settings) {
  const MethodInfo& info = find_method(method);
  return runs_in(info.name, info.bind(settings).text());
}

}  // namespace

TEST_CASE("a row says which engine runs it, with its settings") {
  CHECK(where("q8_0", {{"hadamard", "true"}}) ==
        "llama.cpp --cache-type-k q8_0 --cache-type-v q8_0 -fa on; ik_llama.cpp -ctk q8_0 -ctv q8_0 -fa on -khad -vhad "
        "(heads of 64 channels)");
  CHECK(where("q8_0", {{"values", "q4_0"}, {"hadamard", "true"}}) ==
        "llama.cpp --cache-type-k q8_0 --cache-type-v q4_0 -fa on (on CUDA built with GGML_CUDA_FA_ALL_QUANTS)");
  CHECK(where("q4_0", {{"values", "q8_0"}, {"hadamard", "true"}}) ==
        "llama.cpp --cache-type-k q4_0 --cache-type-v q8_0 -fa on (on CUDA built with GGML_CUDA_FA_ALL_QUANTS)");
  CHECK(where("q4_0", {}) ==
        "llama.cpp --cache-type-k q4_0 --cache-type-v q4_0 -fa on (head dimensions that are no multiple of 64)");
  CHECK(where("q6_0", {{"values", "q5_0"}, {"hadamard", "true"}}) ==
        "ik_llama.cpp -ctk q6_0 -ctv q5_0 -fa on -khad -vhad (heads of 64 channels)");
  CHECK(where("q8_0", {{"form", "kv"}}) == "ik_llama.cpp -ctk q8_KV -ctv q8_0 -fa on (on processors)");
  CHECK(where("q8_0", {{"form", "kv"}, {"values", "q6_0"}, {"hadamard", "true"}}) ==
        "ik_llama.cpp -ctk q8_KV -ctv q6_0 -fa on -khad -vhad (heads of 64 channels, on processors)");
  CHECK(where("iq4_nl", {{"hadamard", "true"}}) ==
        "llama.cpp --cache-type-k iq4_nl --cache-type-v iq4_nl -fa on (CUDA has no kernel of iq4_nl)");
  CHECK(where("q8_0", {{"hadamard", "true"}, {"values", "Q8_0"}}) == where("q8_0", {{"hadamard", "true"}}));
  CHECK(where("int", {{"bits", "4"}, {"form", "exl3"}}) == "exllamav3 -cq 4");
  CHECK(where("int", {{"bits", "8"}, {"value_bits", "4"}, {"form", "exl3"}}) == "exllamav3 -cq 8,4");
  CHECK(where("int", {{"bits", "4"}}).empty());
  CHECK(where("fp8", {}) == "vLLM --kv-cache-dtype fp8");
  CHECK(where("snapkv@kvpress", {}) == "kvpress SnapKVPress(compression_ratio=R)");
  CHECK(where("q8_0", {{"hadamard", "true"}, {"queries", "q8_0"}}) ==
        "llama.cpp --cache-type-k q8_0 --cache-type-v q8_0 -fa on (on processors)");
  // kvpress keeps int(n (1 - ratio)): of 0.5225 488 tokens, and of 0.9 99.
  for (const auto& [kept, tokens, ratio] : {std::tuple(64, 256, "0.75"),
                                            {489, 1024, "0.522"},
                                            {1000, 1024, "0.023"},
                                            {100, 1000, "0.8995"},
                                            {1023, 1024, "0.0005"},
                                            {0, 1024, "R"}})  // a row without results
    CHECK(runs_in("snapkv@kvpress", "", kept, tokens) ==
          fmt::format("kvpress SnapKVPress(compression_ratio={})", ratio));
  CHECK(runs_in("keydiff", "block=128", 128, 256) ==
        "kvpress BlockPress(KeyDiffPress(compression_ratio=0.5), block_size=128)");
  CHECK(runs_in("knorm", "", 0, 0) == "kvpress KnormPress(compression_ratio=R)");
  CHECK(runs_in("knorm", "", 256, 256) == "kvpress KnormPress(compression_ratio=0)");
  show_as("Four", "q4_0", ""), show_as("Mixed", "q8_0", "values=q4_0");
  CHECK(runs_in("Four", "") == runs_in("q4_0", ""));
  CHECK(runs_in("Mixed", "") == runs_in("q8_0", "values=q4_0"));
  CHECK(where("adakv@kvpress(snapkv@kvpress)", {}) ==
        "kvpress AdaKVPress(SnapKVPress(compression_ratio=R)) (masks tokens, and saves no memory)");
  CHECK(where("int4", {{"group", "32"}, {"form", "mlx"}}) ==
        "mlx-lm --kv-bits 4 --kv-group-size 32 --quantized-kv-start 0 (head dimensions that are multiples of 32)");
  for (const char* method : {"h2o", "h2o+q8_0", "snapkv", "q8_0+int8"}) CHECK(runs_in(method, "") == "");
  CHECK(where("fp8", {{"scale", "tensor"}}) == "");
}

// A build of llama.cpp for CUDA without options has kernels of q4_0-q4_0 and q8_0-q8_0 alone, of the types that kvbench
// has (ggml/CMakeLists.txt, GGML_CUDA_FA_QUANTS); with all of them built iq4_nl still has none.
TEST_CASE("a row of llama.cpp says for each pair of types what flash attention on CUDA takes") {
  const std::string_view types[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl"};
  for (const std::string_view keys : types) {
    for (const std::string_view values : types) {
      CAPTURE(keys);
      CAPTURE(values);
      const std::string all = keys == values ? where(keys, {{"hadamard", "true"}})
                                             : where(keys, {{"hadamard", "true"}, {"values", std::string(values)}});
      const std::string text = all.substr(0, all.find("; ik_llama.cpp"));
      const std::string pair = fmt::format("{}-{}", keys, values);
      const bool needs = text.ends_with(" -fa on (on CUDA built with GGML_CUDA_FA_ALL_QUANTS)");
      const bool none = text.ends_with(" -fa on (CUDA has no kernel of iq4_nl)");
      CHECK(text.starts_with(fmt::format("llama.cpp --cache-type-k {} --cache-type-v {} ", keys, values)));
      CHECK(none == (pair.find("iq4_nl") != pair.npos));
      CHECK(needs == (pair != "q4_0-q4_0" && pair != "q8_0-q8_0" && !none));
    }
  }
  CHECK(rows_of_set("llama.cpp").size() == 15);  // the others have a setting, and are named
}

TEST_CASE("the name of an engine stands for what it runs with any head dimension, and says so in every row") {
  for (const EngineInfo& one : engines()) {
    const std::string_view engine = one.name();
    const std::vector<MethodSettings> rows = rows_of_set(engine);
    CHECK(rows.size() >= 2);
    for (const auto& [info, settings] : rows)
      CHECK(runs_in(info->name, info->bind(settings).text()).find(engine) != std::string::npos);
  }
  const auto plain = [](const MethodSettings& row) { return row.info->name == "q8_0" && row.settings.empty(); };
  CHECK(std::ranges::none_of(rows_of_set("LLAMA.cpp"), plain));
  CHECK(rows_of_set("tensorrt-llm").empty());
}
