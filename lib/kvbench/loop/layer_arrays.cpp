// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/layer_arrays.hpp>

#include <kvbench/core/error.hpp>

namespace kvbench::loop {
namespace {

template <class T>
std::span<const T> rows_of(std::span<const T> array, Index heads, Index head) {
  const std::size_t size = array.size() / static_cast<std::size_t>(heads);
  return array.subspan(static_cast<std::size_t>(head) * size, size);
}

/// Rows [begin, end) of the `group` query heads of a kv head, stacked as g*(end-begin) + i.
std::vector<float> stacked(std::span<const float> array, const trace::TraceInfo& info, Index kv_head, std::size_t begin,
                           std::size_t end) {
  const auto dim = static_cast<std::size_t>(info.head_dim);
  std::vector<float> out;
  for (Index g = 0; g < info.group(); ++g) {
    const auto head = rows_of(array, info.num_query_heads, kv_head * info.group() + g);
    out.insert(out.end(), head.begin() + static_cast<std::ptrdiff_t>(begin * dim),
               head.begin() + static_cast<std::ptrdiff_t>(end * dim));
  }
  return out;
}

std::vector<float> copy_of(std::span<const float> rows) { return {rows.begin(), rows.end()}; }

}  // namespace

void check_arrays(const trace::TraceInfo& document, std::size_t layer, const LayerArrays& arrays) {
  const trace::PromptInfo& prompt = document.prompts.front();
  const auto expect = [&](const char* name, std::size_t size, Index heads, std::size_t rows, Index dim) {
    const std::size_t expected = static_cast<std::size_t>(heads * dim) * rows;
    if (size == expected) return;
    throw Error("layer {}: {} has {} numbers instead of {} heads of {} rows of {}", prompt.layers.at(layer).layer, name,
                size, heads, rows, dim);
  };
  const trace::LayerInfo& info = prompt.layers.at(layer);
  const auto tokens = static_cast<std::size_t>(prompt.num_tokens);
  const std::size_t queries = info.query_positions.size();
  expect("`keys`", arrays.keys.size(), document.num_kv_heads, tokens, document.head_dim);
  expect("`values`", arrays.values.size(), document.num_kv_heads, tokens, document.value_dim);
  expect("`queries`", arrays.queries.size(), document.num_query_heads, queries, document.head_dim);
  if (info.speculated_queries)
    expect("`speculated`", arrays.speculated.size(), document.num_query_heads, queries, document.head_dim);
  if (info.output_sketch)
    expect("`output`", arrays.output.size(), document.num_query_heads, static_cast<std::size_t>(document.value_dim),
           info.output_sketch->columns);
  if (info.column_sums_end) expect("`column_sums`", arrays.column_sums.size(), document.num_query_heads, tokens, 1);
}

replay::HeadSlabs slabs_of(const trace::TraceInfo& document, const replay::PromptPlan& plan, std::size_t layer,
                           Index kv_head, const LayerArrays& arrays, Uploader& uploader) {
  const trace::LayerInfo& info = document.prompts.front().layers[layer];
  const replay::QueryRange range = query_range(info, plan);
  const auto keys = rows_of(arrays.keys, document.num_kv_heads, kv_head);
  const auto values = rows_of(arrays.values, document.num_kv_heads, kv_head);
  replay::HeadSlabs out;
  measure_values(values, document.value_dim, info, range, out);
  out.keys = uploader.upload(copy_of(keys));
  out.values = uploader.upload(copy_of(values));
  out.queries = stacked(arrays.queries, document, kv_head, range.split, range.end);
  if (info.speculated_queries) out.speculated = stacked(arrays.speculated, document, kv_head, range.split, range.end);
  if (range.first < range.split)
    out.observed = uploader.upload(stacked(arrays.queries, document, kv_head, range.first, range.split));
  if (info.output_sketch)
    out.sketch = {.columns = info.output_sketch->columns,
                  .matrix = copy_of(rows_of(arrays.output, document.num_kv_heads, kv_head))};
  if (info.column_sums_end == plan.context) {
    std::vector<float> sums;
    for (Index g = 0; g < document.group(); ++g) {
      const auto row = rows_of(arrays.column_sums, document.num_query_heads, kv_head * document.group() + g);
      sums.insert(sums.end(), row.begin() + plan.protect_first, row.begin() + plan.protect_first + plan.middle());
    }
    out.column_sums = uploader.upload(std::move(sums));
  }
  return out;
}

}  // namespace kvbench::loop
