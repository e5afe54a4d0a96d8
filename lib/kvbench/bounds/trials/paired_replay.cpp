// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/paired_replay.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::bounds {
namespace {

/// Sums and counts of one configuration over blocks of queries.
struct QueryBlockSums {
  std::vector<double> sums, counts;
  explicit QueryBlockSums(std::size_t blocks) : sums(blocks), counts(blocks) {}
  void add(const replay::ConfigurationResult& result, std::size_t queries, replay::Metric metric) {
    for (std::size_t row = 0; row < result.metrics.size(); ++row) {
      const double value = result.metrics[row][static_cast<std::size_t>(metric)];
      if (std::isnan(value)) continue;
      sums[row % queries / queries_per_block] += value;
      counts[row % queries / queries_per_block] += 1;
    }
  }
};

}  // namespace

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
  request_.prompts = {context.reader->info().prompts.front().id};
  try {
    results_ = replay::replay(*context.reader, request_, {.threads = 1}, {.stop = context.stop});
  } catch (const Error& reason) {  // the other checks of the run go on
    throw methods::Unavailable(reason.what());
  }
}

std::vector<double> PairedReplay::units(std::size_t method, std::size_t budget, replay::Metric metric) const {
  std::vector<double> values;
  std::string reason = "nothing was replayed";
  bool any = false;
  for (const replay::HeadResult& head : results_.heads) {
    QueryBlockSums units(
        static_cast<std::size_t>((std::ssize(head.positions) + queries_per_block - 1) / queries_per_block));
    for (std::size_t c = 0; c < results_.configurations.size(); ++c) {
      const replay::Configuration& key = results_.configurations[c];
      if (key.method != method || key.budget != budget) continue;
      if (head.results[c].status != replay::Status::ok) {
        reason = head.results[c].reason;
        continue;
      }
      any = true;
      units.add(head.results[c], head.positions.size(), metric);
    }
    for (std::size_t u = 0; u < units.sums.size(); ++u) {
      values.push_back(units.counts[u] > 0 ? units.sums[u] / units.counts[u] : NAN);
    }
  }
  if (!any) throw methods::Unavailable(fmt::format("{}: {}", request_.methods[method].info->name, reason));
  return values;
}

std::vector<std::size_t> PairedReplay::unit_heads() const {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < results_.heads.size(); ++h) {
    heads.insert(heads.end(), (results_.heads[h].positions.size() + queries_per_block - 1) / queries_per_block, h);
  }
  return heads;
}

std::string PairedReplay::text() const {
  return fmt::format("layers={};unit=16 queries of a head", fmt::join(request_.layers, ","));
}

}  // namespace kvbench::bounds
