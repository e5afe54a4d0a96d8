// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/paired_replay.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::bounds {
replay::MethodChoice method_choice(const std::string& name, const std::vector<methods::Assignment>& settings) {
  const methods::MethodInfo& info = methods::find_method(name);
  return {&info, info.bind(settings)};
}

std::vector<std::int64_t> spread_layers(const trace::TraceInfo& trace, std::size_t count) {
  std::vector<std::int64_t> all, chosen;
  for (const trace::LayerInfo& layer : trace.prompts.front().layers) {
    if (layer.has_methods()) all.push_back(layer.layer);
  }
  if (all.empty()) throw methods::Unavailable("every layer of the trace has a sliding window or a softcap");
  if (all.size() <= count || count < 2)
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), count))};
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[i * (all.size() - 1) / (count - 1)]);
  return chosen;
}

PairedReplay::PairedReplay(const CheckContext& context, replay::ReplayRequest request) : request_(std::move(request)) {
  try {
    results_ = replay::replay(*context.reader, request_, {.threads = 1}, {.stop = context.stop});
  } catch (const Error& reason) {  // the other checks of the run go on
    throw methods::Unavailable(reason.what());
  }
}

std::vector<double> PairedReplay::means(const ReplayedMethod& of, std::size_t units, const UnitOf& unit_of) const {
  std::vector<double> sums(units), counts(units), out;
  std::string reason = "nothing was replayed";
  for (std::size_t h = 0; h < results_.heads.size(); ++h) {
    const replay::HeadResult& head = results_.heads[h];
    for (std::size_t c = 0; c < results_.configurations.size(); ++c) {
      const replay::Configuration& key = results_.configurations[c];
      if (key.method != of.method || key.budget != of.budget) continue;
      if (head.results[c].status != replay::Status::ok) reason = head.results[c].reason;
      for (std::size_t row = 0; row < head.results[c].metrics.size(); ++row) {
        const double value = head.results[c].metrics[row][of.metric];
        if (std::isnan(value)) continue;
        const std::size_t unit = unit_of(h, row % head.positions.size());
        sums[unit] += value, counts[unit] += 1;
      }
    }
  }
  if (std::ranges::all_of(counts, [](double n) { return n == 0; }))
    throw methods::Unavailable(fmt::format("{}: {}", request_.methods[of.method].info->name, reason));
  for (std::size_t u = 0; u < units; ++u) out.push_back(counts[u] > 0 ? sums[u] / counts[u] : NAN);
  return out;
}

std::vector<double> PairedReplay::units(const ReplayedMethod& of) const {
  const std::vector<std::size_t> heads = unit_heads();
  const auto unit_of = [&](std::size_t head, std::size_t query) {
    const auto first = std::ranges::find(heads, head) - heads.begin();
    return static_cast<std::size_t>(first) + query / queries_per_block;
  };
  return means(of, heads.size(), unit_of);
}

std::vector<double> PairedReplay::places(const ReplayedMethod& of) const {
  const std::vector<std::int64_t> layers = this->layers();
  std::vector<std::size_t> texts;
  for (const replay::HeadResult& head : results_.heads) {
    if (std::ranges::find(texts, head.place.prompt) == texts.end()) texts.push_back(head.place.prompt);
  }
  const auto unit_of = [&](std::size_t head, std::size_t) {
    const replay::HeadResult& of_head = results_.heads[head];
    const auto text = std::ranges::find(texts, of_head.place.prompt) - texts.begin();
    const auto layer = std::ranges::find(layers, of_head.layer) - layers.begin();
    return static_cast<std::size_t>(text) * layers.size() + static_cast<std::size_t>(layer);
  };
  return means(of, texts.size() * layers.size(), unit_of);
}

std::vector<std::int64_t> PairedReplay::layers() const {
  std::vector<std::int64_t> layers;
  for (const replay::HeadResult& head : results_.heads) {
    if (std::ranges::find(layers, head.layer) == layers.end()) layers.push_back(head.layer);
  }
  return layers;
}

std::vector<std::size_t> PairedReplay::unit_heads() const {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < results_.heads.size(); ++h) {
    heads.insert(heads.end(), (results_.heads[h].positions.size() + queries_per_block - 1) / queries_per_block, h);
  }
  return heads;
}

std::string PairedReplay::text() const { return fmt::format("layers={}", fmt::join(request_.layers, ",")); }

}  // namespace kvbench::bounds
