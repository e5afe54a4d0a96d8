// SPDX-License-Identifier: Apache-2.0
// Shows a trace to the Python tests through the project's own reader: a line of JSON that describes it, or the fp32
// numbers of one array of one layer of one prompt, all heads, as raw bytes.
//   kvdump_print_array trace.h5
//   kvdump_print_array trace.h5 PROMPT LAYER ARRAY
#include <cstdlib>
#include <exception>
#include <string>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <kvbench/trace/reader.hpp>

namespace {

using namespace kvbench::trace;

void print_description(const TraceInfo& info) {
  fmt::print(
      R"({{"model":"{}","arch":"{}","quantisation":"{}","num_layers":{},"query_heads":{},"kv_heads":{},"d":{},"dv":{},)"
      R"("rope_type":"{}","rope_layout":"{}","dtype":"{}","prompts":[)",
      info.model, info.arch, info.quantisation, info.num_layers, info.num_query_heads, info.num_kv_heads, info.head_dim,
      info.value_dim, info.rope_type, info.rope_layout, name_of(info.dtype));
  const char* separator = "";
  for (const auto& prompt : info.prompts) {
    const auto& layer = prompt.layers.front();
    std::vector<int> layers;
    std::vector<const char*> speculated;
    std::vector<std::int64_t> windows;
    std::vector<double> thetas;
    std::vector<std::string> spans;
    for (const auto& [of, begin, end] : prompt.spans) spans.push_back(fmt::format("\"{} {} {}\"", begin, end, of));
    for (const auto& l : prompt.layers) {
      layers.push_back(l.layer);
      windows.push_back(l.window);
      thetas.push_back(l.rope_theta);
      speculated.push_back(l.speculated_queries ? "true" : "false");
    }
    fmt::print(
        R"({}{{"name":"{}","n":{},"prompt_tokens":{},"tokens":[{}],"layers":[{}],"windows":[{}],"thetas":[{}],)"
        R"("positions":[{}],"scale":{},"theta":{},"window":{},"softcap":{},"column_sums_end":{},"speculated":[{}],"spans":[{}]}})",
        separator, prompt.name, prompt.num_tokens, prompt.prompt_tokens, fmt::join(prompt.tokens, ","),
        fmt::join(layers, ","), fmt::join(windows, ","), fmt::join(thetas, ","), fmt::join(layer.query_positions, ","),
        layer.scale, layer.rope_theta, layer.window, layer.softcap, layer.column_sums_end.value_or(-1),
        fmt::join(speculated, ","), fmt::join(spans, ","));
    separator = ",";
  }
  fmt::print("]}}\n");
}

void print_array(const Reader& reader, std::size_t prompt_index, int layer_number, const std::string& name) {
  const auto& prompt = reader.info().prompts.at(prompt_index);
  for (const auto& layer : prompt.layers) {
    for (int a = 0; layer.layer == layer_number && a <= static_cast<int>(Array::attention_output); ++a) {
      const auto array = static_cast<Array>(a);
      if (name != name_of(array)) continue;
      const bool of_keys = array == Array::keys || array == Array::values || array == Array::keys_pre_rope;
      const auto heads = of_keys ? reader.info().num_kv_heads : reader.info().num_query_heads;
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto data = reader.read_head(prompt, layer, array, head);
        std::fwrite(data.data(), sizeof(float), data.size(), stdout);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Reader reader(argv[1]);
    if (argc == 2) print_description(reader.info());
    if (argc == 5) print_array(reader, std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), argv[4]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
