// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/layer_loop.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <kvbench/core/parallel_for.hpp>
#include <kvbench/replay/measure/host_entries.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/devices.hpp>

namespace kvbench::loop {
namespace {

/// Adds LayerAnswer::held of the next head.
void add_held(std::vector<methods::HostTable> tables, const trace::TraceInfo& document,
              const replay::ReplayRequest& request, LayerAnswer& answer) {
  const auto stands_for_others = [](const methods::HostTable& table) { return table.merged() || table.weighted(); };
  if (std::ranges::any_of(tables, stands_for_others))
    answer.no_tokens = "its entries have weights or rows of their own, and only tokens can be compressed again";
  const Index context = document.prompts.front().prompt_tokens, end = document.prompts.front().num_tokens;
  Index queries = 1;
  for (const methods::HostTable& table : tables)
    if (table.per_query) queries = table.rows / (table.per_head ? document.group() : 1);
  const replay::HostEntries entries(std::move(tables), queries);
  const bool retrieves = request.methods.front().info->kind == methods::Kind::retrieval;
  std::vector<bool> held(static_cast<std::size_t>(end), retrieves);
  const auto add = [&](Index first, Index last) {
    for (Index t = std::max<Index>(0, first); t < std::min(last, end); ++t) held[static_cast<std::size_t>(t)] = true;
  };
  for (Index g = 0; !retrieves && g < document.group(); ++g) {
    const std::vector<bool> of_query_head = entries.held(g, end);
    if (g > 0 && of_query_head != held && answer.no_tokens.empty())
      answer.no_tokens = "the query heads of a kv head hold different tokens, and are compressed again together";
    std::transform(held.begin(), held.end(), of_query_head.begin(), held.begin(), std::logical_or<>());
  }
  add(0, request.protect_first);
  add(context - request.protect_last, context);
  if (request.decoded == replay::Decoded::keep) add(context, end);  // they are no entries of the method
  std::vector<Index>& tokens = answer.held.emplace_back();
  for (Index t = 0; t < end; ++t)
    if (held[static_cast<std::size_t>(t)]) tokens.push_back(t);
}

/// The first status that is not ok is that of the layer: where one head has no output, none is replaced.
LayerAnswer collect(std::vector<replay::HeadResult>& heads, const trace::TraceInfo& document,
                    const replay::ReplayRequest& request) {
  LayerAnswer answer;
  for (replay::HeadResult& head : heads) {
    replay::ConfigurationResult& result = head.results.front();
    if (answer.status == replay::Status::ok && result.status != replay::Status::ok)
      answer.status = result.status, answer.reason = result.reason;
    if (result.raw) {
      add_held(std::move(result.raw->entries), document, request, answer);
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
  request_.methods.clear();
  options_.keep_raw = options_.keep_exact = true;
  for (Index h = 0; h < document_.num_kv_heads; ++h) backends_.push_back(make_backend(options_));
}

LayerLoop::~LayerLoop() = default;

void LayerLoop::start(const LoopConfiguration& configuration) {
  const bool same = request_.methods.size() == 1 && replay::same(request_.methods[0], configuration.method);
  request_ = configuration.in(std::move(request_));
  plan_ = make_plan(document_, request_);
  if (same) return;
  prepared_.clear();
  prepared_.resize(plan_.work_items.size());
}

LayerAnswer LayerLoop::answer(std::size_t layer, const LayerArrays& arrays) {
  check_arrays(document_, layer, arrays);
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
    for (const Index head : item.kv_heads)
      of_item.push_back(slabs_of(document_, plan_.prompts.front(), layer, head, arrays, *uploader));
    run_work_item(
        {.trace = document_,
         .plan = plan_,
         .request = request_,
         .options = options_,
         .item = item,
         .results = std::span(heads).subspan(static_cast<std::size_t>(item.kv_heads.front()), item.kv_heads.size()),
         .stop = stop_,
         .kept = &prepared_[items[i]],
         .costs = &costs_},
        std::move(of_item), backend);
  });
  return collect(heads, document_, request_);
}

}  // namespace kvbench::loop
