// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/layer_loop.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <kvbench/core/parallel_for.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/devices.hpp>

namespace kvbench::loop {
namespace {

/// The tokens that are entries, and those of `fixed`, which are beside them.
std::vector<std::int32_t> held_tokens(const std::vector<methods::HostTable>& entries, std::vector<std::int32_t> fixed) {
  for (const methods::HostTable& table : entries)
    std::ranges::copy_if(table.ids, std::back_inserter(fixed), [](std::int32_t id) { return id >= 0; });
  std::ranges::sort(fixed);
  fixed.erase(std::unique(fixed.begin(), fixed.end()), fixed.end());
  return fixed;
}

/// The first status that is not ok is that of the layer: where one head has no output, none is replaced.
LayerAnswer collect(std::vector<replay::HeadResult>& heads, const std::optional<std::vector<std::int32_t>>& fixed) {
  LayerAnswer answer;
  for (replay::HeadResult& head : heads) {
    replay::ConfigurationResult& result = head.results.front();
    if (answer.status == replay::Status::ok && result.status != replay::Status::ok)
      answer.status = result.status, answer.reason = result.reason;
    if (result.raw) {
      if (fixed) answer.held.push_back(held_tokens(result.raw->entries, *fixed));
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

// Entries of other kinds stand for several tokens, or are chosen among those held.
std::optional<std::vector<std::int32_t>> LayerLoop::fixed_tokens() const {
  const methods::Kind kind = request_.methods.front().info->kind;
  if (kind == methods::Kind::merging || kind == methods::Kind::retrieval) return std::nullopt;
  const Index context = document_.prompts.front().prompt_tokens;
  std::vector<std::int32_t> out;
  for (std::int32_t token = 0; token < context; ++token)
    if (token < request_.protect_first || token >= context - request_.protect_last) out.push_back(token);
  return out;
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
  return collect(heads, fixed_tokens());
}

}  // namespace kvbench::loop
