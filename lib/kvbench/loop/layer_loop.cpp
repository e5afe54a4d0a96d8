// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/layer_loop.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/workers.hpp>

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

/// The first status that is not ok is that of the layer: where one head has no output, none is replaced.
LayerAnswer collect(std::vector<replay::HeadResult>& heads) {
  LayerAnswer answer;
  for (replay::HeadResult& head : heads) {
    replay::ConfigurationResult& result = head.results.front();
    if (answer.status == replay::Status::ok && result.status != replay::Status::ok)
      answer.status = result.status, answer.reason = result.reason;
    if (result.raw) {
      std::ranges::copy(result.raw->output, std::back_inserter(answer.outputs));
      std::ranges::copy(result.raw->exact, std::back_inserter(answer.exact));
    }
    result.raw.reset();
    answer.heads.push_back(std::move(result));
  }
  const auto finite = [](float x) { return std::isfinite(x); };
  if (answer.status == replay::Status::ok &&
      !std::ranges::all_of(answer.outputs, finite)) {  // weights of an estimate may sum up to 0
    answer.status = replay::Status::failed;
    answer.reason = "an output is not finite, and the model cannot continue with it";
  }
  if (answer.status != replay::Status::ok) answer.outputs.clear(), answer.exact.clear();
  return answer;
}

}  // namespace

LayerLoop::LayerLoop(trace::TraceInfo document, replay::ReplayRequest request, replay::RunOptions options,
                     const std::atomic<bool>* stop)
    : document_(std::move(document)), request_(std::move(request)), options_(std::move(options)), stop_(stop) {
  request_.protocol = replay::Protocol::decode;
  request_.methods.clear();
  options_.keep_raw = options_.keep_exact = true;
  for (Index h = 0; h < document_.num_kv_heads; ++h) backends_.push_back(make_backend(options_));
}

LayerLoop::~LayerLoop() = default;

void LayerLoop::start(const LoopConfiguration& configuration) {
  const bool same = request_.methods.size() == 1 && request_.methods[0].info == configuration.method.info &&
                    request_.methods[0].params.text() == configuration.method.params.text();
  request_.methods = {configuration.method};
  request_.budgets = {configuration.budget};
  request_.seeds = {configuration.seed};
  plan_ = make_plan(document_, request_);
  if (same) return;
  prepared_.clear();
  prepared_.resize(plan_.work_items.size());
}

void LayerLoop::check(std::size_t layer, const LayerArrays& arrays) const {
  const trace::PromptInfo& prompt = document_.prompts.front();
  const auto expect = [&](const char* name, std::size_t size, Index heads, std::size_t rows, Index dim) {
    const std::size_t expected = static_cast<std::size_t>(heads * dim) * rows;
    if (size == expected) return;
    throw Error("layer {}: {} has {} numbers instead of {} heads of {} rows of {}", prompt.layers.at(layer).layer, name,
                size, heads, rows, dim);
  };
  const trace::LayerInfo& info = prompt.layers.at(layer);
  const auto tokens = static_cast<std::size_t>(prompt.num_tokens);
  const std::size_t queries = info.query_positions.size();
  expect("`keys`", arrays.keys.size(), document_.num_kv_heads, tokens, document_.head_dim);
  expect("`values`", arrays.values.size(), document_.num_kv_heads, tokens, document_.value_dim);
  expect("`queries`", arrays.queries.size(), document_.num_query_heads, queries, document_.head_dim);
  if (info.speculated_queries)
    expect("`speculated`", arrays.speculated.size(), document_.num_query_heads, queries, document_.head_dim);
  if (info.column_sums_end) expect("`column_sums`", arrays.column_sums.size(), document_.num_query_heads, tokens, 1);
}

replay::HeadSlabs LayerLoop::slabs(std::size_t layer, Index kv_head, const LayerArrays& arrays,
                                   Uploader& uploader) const {
  const trace::LayerInfo& info = document_.prompts.front().layers[layer];
  const replay::PromptPlan& plan = plan_.prompts.front();
  const replay::QueryRange range = query_range(info, plan);
  const auto keys = rows_of(arrays.keys, document_.num_kv_heads, kv_head);
  const auto values = rows_of(arrays.values, document_.num_kv_heads, kv_head);
  replay::HeadSlabs out;
  measure_values(values, document_.value_dim, info, range, out);
  out.keys = uploader.upload(copy_of(keys));
  out.values = uploader.upload(copy_of(values));
  out.queries = stacked(arrays.queries, document_, kv_head, range.split, range.end);
  if (info.speculated_queries) out.speculated = stacked(arrays.speculated, document_, kv_head, range.split, range.end);
  if (range.first < range.split)
    out.observed = uploader.upload(stacked(arrays.queries, document_, kv_head, range.first, range.split));
  if (info.column_sums_end == plan.context) {
    std::vector<float> sums;
    for (Index g = 0; g < document_.group(); ++g) {
      const auto row = rows_of(arrays.column_sums, document_.num_query_heads, kv_head * document_.group() + g);
      sums.insert(sums.end(), row.begin() + plan.protect_first, row.begin() + plan.protect_first + plan.middle());
    }
    out.column_sums = uploader.upload(std::move(sums));
  }
  return out;
}

LayerAnswer LayerLoop::answer(std::size_t layer, const LayerArrays& arrays) {
  check(layer, arrays);
  std::vector<std::size_t> items;
  for (std::size_t u = 0; u < plan_.work_items.size(); ++u) {
    if (plan_.work_items[u].layer == layer) items.push_back(u);
  }
  std::vector<replay::HeadResult> heads;
  for (Index h = 0; h < document_.num_kv_heads; ++h) {
    heads.push_back(
        empty_head(document_, plan_, plan_.work_items[items.front()].first_result + static_cast<std::size_t>(h)));
  }
  parallel_for(items.size(), thread_count(options_), [&](std::size_t i, std::size_t) {
    const replay::WorkItem& item = plan_.work_items[items[i]];
    Backend& backend = *backends_[i];
    const std::shared_ptr<Uploader> uploader = backend.make_uploader();
    std::vector<replay::HeadSlabs> of_item;
    for (const Index head : item.kv_heads) of_item.push_back(slabs(layer, head, arrays, *uploader));
    run_work_item(document_, plan_, item, request_, options_, std::move(of_item), backend, {stop_, [](double) {}},
                  std::span(heads).subspan(static_cast<std::size_t>(item.kv_heads.front()), item.kv_heads.size()),
                  &prepared_[items[i]]);
  });
  return collect(heads);
}

}  // namespace kvbench::loop
