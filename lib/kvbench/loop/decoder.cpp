// SPDX-License-Identifier: Apache-2.0
#include <kvbench/loop/decoder.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/core/parallel_for.hpp>
#include <kvbench/loop/stream.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/workers.hpp>

namespace kvbench::loop {
Decoder::Decoder(trace::TraceInfo document, const replay::ReplayRequest& request, replay::RunOptions options,
                 const LoopConfiguration& configuration, const std::atomic<bool>* stop)
    : document_(std::move(document)),
      request_(configuration.in(request)),
      options_(std::move(options)),
      stop_(stop),
      plan_(make_plan(document_, request_)),
      layers_(document_.prompts.front().layers.size()) {}

Decoder::~Decoder() = default;

replay::OpenCaches Decoder::open(const replay::WorkItem& item, const LayerArrays& arrays, Backend& backend,
                                 Index& budget) const {
  const std::shared_ptr<Uploader> uploader = backend.make_uploader();
  std::vector<replay::HeadSlabs> slabs;
  std::vector<replay::HeadResult> results;
  for (std::size_t h = 0; h < item.kv_heads.size(); ++h) {
    slabs.push_back(slabs_of(document_, plan_.prompts.front(), item.layer, item.kv_heads[h], arrays, *uploader));
    results.push_back(empty_head(document_, plan_, item.first_result + h));
  }
  replay::OpenCaches caches = open_caches({.trace = document_,
                                           .plan = plan_,
                                           .request = request_,
                                           .options = options_,
                                           .item = item,
                                           .results = results,
                                           .stop = stop_},
                                          std::move(slabs), backend);
  budget = results.front().results.front().budget_tokens;
  if (!caches.caches.empty()) return caches;
  const replay::ConfigurationResult& result = results.front().results.front();
  const std::string& name = request_.methods.front().info->name;
  const int number = document_.prompts.front().layers[item.layer].layer;
  if (result.status == replay::Status::failed) throw Error("{}: layer {}: {}", name, number, result.reason);
  throw NoCache(result.status, fmt::format("{}: layer {}: {}", name, number, result.reason));
}

void Decoder::compress(std::size_t layer, const LayerArrays& arrays) {
  check_arrays(document_, layer, arrays);
  const trace::PromptInfo& prompt = document_.prompts.front();
  std::vector<const replay::WorkItem*> items;
  for (const replay::WorkItem& item : plan_.work_items) {
    if (item.layer == layer) items.push_back(&item);
  }
  Streams streams(items.size());
  parallel_for(items.size(), thread_count(options_), [&](std::size_t i, std::size_t) {
    std::unique_ptr<Backend> backend = make_backend(options_);
    Index budget = 0;
    replay::OpenCaches caches = open(*items[i], arrays, *backend, budget);
    const bool observes = caches.observes;
    streams[i] = std::make_unique<Stream>(*items[i], observes, prompt.prompt_tokens, std::move(caches),
                                          std::move(backend), budget);
  });
  layers_[layer] = std::move(streams);
}

std::vector<float> Decoder::begin(std::size_t layer, const LayerArrays& arrays) {
  compress(layer, arrays);
  const trace::PromptInfo& prompt = document_.prompts.front();
  return run(layer, prompt.num_tokens - prompt.prompt_tokens, arrays);
}

std::vector<float> Decoder::answer(std::size_t layer, Index count, const LayerArrays& arrays) {
  const auto expect = [&](const char* name, std::size_t size, Index heads, Index cols) {
    if (static_cast<Index>(size) == heads * count * cols) return;
    throw Error("{} of {} tokens have {} numbers instead of {} heads of {} rows of {}", name, count, size, heads, count,
                cols);
  };
  expect("`keys`", arrays.keys.size(), document_.num_kv_heads, document_.head_dim);
  expect("`values`", arrays.values.size(), document_.num_kv_heads, document_.value_dim);
  expect("`queries`", arrays.queries.size(), document_.num_query_heads, document_.head_dim);
  if (layers_.at(layer).empty()) throw Error("layer {} has no context yet", layer);
  return run(layer, count, arrays);
}

std::vector<float> Decoder::run(std::size_t layer, Index count, const LayerArrays& arrays) {
  std::vector<float> outputs(static_cast<std::size_t>(document_.num_query_heads * count * document_.value_dim));
  Streams& streams = layers_[layer];
  parallel_for(streams.size(), thread_count(options_),
               [&](std::size_t i, std::size_t) { streams[i]->answer(arrays, count, outputs); });
  if (!std::ranges::all_of(outputs, [](float x) { return std::isfinite(x); })) {  // weights may sum up to 0
    throw Error("{}: layer {}: an output is not finite, and the model cannot continue with it",
                request_.methods.front().info->name, document_.prompts.front().layers[layer].layer);
  }
  return outputs;
}

replay::Bytes Decoder::bytes() const {
  replay::Bytes sum;
  for (const Streams& streams : layers_) {
    for (const auto& stream : streams) stream->add_bytes(request_.kv_element, sum);
  }
  return sum;
}

Decoder::Tokens Decoder::tokens() const {
  Tokens mean;
  double heads = 0;
  for (const Streams& streams : layers_) {
    for (const auto& stream : streams) {
      heads += static_cast<double>(stream->kv_heads());
      mean.budget += static_cast<double>(stream->kv_heads() * stream->budget());
      mean.kept += stream->kept();
    }
  }
  return {mean.budget / heads, mean.kept / heads};
}

}  // namespace kvbench::loop
