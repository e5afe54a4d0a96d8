// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <doctest/doctest.h>
#include <kvbench/methods/engines.hpp>

using namespace kvbench::methods;

namespace {

/// What a user writes, as rows print it: runs_in() of "q8_0[values=q4_0]".
std::string where(std::string_view method, std::vector<Assignment> settings) {
  const MethodInfo& info = find_method(method);
  return runs_in(info.name, info.bind(settings).text());
}

}  // namespace

TEST_CASE("a row says which engine runs it, with its settings") {
  CHECK(where("q8_0", {{"hadamard", "true"}}) == "llama.cpp --cache-type-k q8_0 --cache-type-v q8_0");
  CHECK(where("q8_0", {{"values", "q4_0"}, {"hadamard", "true"}}) ==
        "llama.cpp --cache-type-k q8_0 --cache-type-v q4_0");
  CHECK(where("q4_0", {}) ==
        "llama.cpp --cache-type-k q4_0 --cache-type-v q4_0 (head dimensions that are no multiple of 64)");
  CHECK(where("iq4_nl", {{"hadamard", "true"}}) == "llama.cpp --cache-type-k iq4_nl --cache-type-v iq4_nl");
  CHECK(where("q8_0", {{"hadamard", "true"}, {"values", "Q8_0"}}) == where("q8_0", {{"hadamard", "true"}}));
  CHECK(where("fp8", {}) == "vLLM --kv-cache-dtype fp8");
  CHECK(where("snapkv@kvpress", {}) == "kvpress SnapKVPress()");
  CHECK(where("adakv@kvpress(snapkv@kvpress)", {}) == "kvpress AdaKVPress(SnapKVPress())");
  for (const char* method : {"h2o", "h2o+q8_0", "snapkv", "q8_0+int8"}) CHECK(runs_in(method, "") == "");
  CHECK(where("fp8", {{"scale", "tensor"}}) == "");
}

TEST_CASE("the name of an engine stands for what it runs with any head dimension, and says so in every row") {
  for (const Engine one : {Engine::llama_cpp, Engine::vllm, Engine::kvpress}) {
    const std::string_view engine = name_of(one);
    const std::vector<MethodSettings> rows = rows_of_set(engine);
    CHECK(rows.size() >= 5);
    for (const auto& [info, settings] : rows)
      CHECK(runs_in(info->name, info->bind(settings).text()).starts_with(engine));
  }
  const auto plain = [](const MethodSettings& row) { return row.info->name == "q8_0" && row.settings.empty(); };
  CHECK(std::ranges::none_of(rows_of_set("LLAMA.cpp"), plain));
  CHECK(rows_of_set("tensorrt-llm").empty());
}
