// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/paired_replay.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench {
namespace {

/// Sums and counts of one configuration over blocks of queries.
struct QueryBlockSums {
  std::vector<double> sums, counts;
  explicit QueryBlockSums(std::size_t blocks) : sums(blocks), counts(blocks) {}
  void add(const CellResult& cell, std::size_t queries, std::size_t length, std::size_t first,
           const std::function<double(const MetricRow&)>& of) {
    for (std::size_t row = 0; row < cell.metrics.size(); ++row) {
      const double value = of(cell.metrics[row]);
      if (std::isnan(value)) continue;
      sums[first + row % queries / length] += value;
      counts[first + row % queries / length] += 1;
    }
  }
};

}  // namespace

MethodChoice method_choice(const std::string& name, const std::vector<Assignment>& settings) {
  const MethodInfo& info = find_method(name);
  return {&info, info.bind(settings)};
}

std::vector<std::int64_t> spread_layers(const trace::TraceInfo& trace, std::size_t count) {
  std::vector<std::int64_t> all, chosen;
  for (const trace::LayerInfo& layer : trace.prompts.front().layers) {
    if (layer.window == 0 && layer.softcap == 0) all.push_back(layer.layer);
  }
  if (all.empty()) throw Unavailable("every layer of the trace has a sliding window or a softcap");
  if (all.size() <= count || count < 2)
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), count))};
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[i * (all.size() - 1) / (count - 1)]);
  return chosen;
}

PairedReplay::PairedReplay(const CheckContext& context, ReplayRequest request) : request_(std::move(request)) {
  request_.prompts = {context.reader->info().prompts.front().id};
  try {
    results_ = replay(*context.reader, request_, {.threads = 1}, {.stop = context.stop});
  } catch (const Error& reason) {  // the other checks of the run go on
    throw Unavailable(reason.what());
  }
}

std::vector<double> PairedReplay::units(std::size_t method, std::size_t budget,
                                        const std::function<double(const MetricRow&)>& of) const {
  const bool by_draw = seeded();
  std::vector<double> values;
  std::string reason = "nothing was replayed";
  bool any = false;
  for (const HeadResult& head : results_.heads) {
    const std::size_t length = by_draw ? std::max<std::size_t>(1, head.positions.size()) : queries_per_block;
    const std::size_t blocks = (head.positions.size() + length - 1) / length;
    const std::size_t draws = by_draw ? request_.seeds.size() : 1;
    QueryBlockSums units(blocks * draws);
    for (std::size_t c = 0; c < results_.configurations.size(); ++c) {
      const Configuration& key = results_.configurations[c];
      if (key.method != method || key.budget != budget) continue;
      if (head.cells[c].status != Status::ok) {
        reason = head.cells[c].reason;
        continue;
      }
      any = true;
      for (std::size_t draw = 0; draw < draws; ++draw) {
        // A method without random numbers ran once; its results are paired with every seed of the others.
        if (request_.methods[method].depends_on_seed() && key.seed != request_.seeds[draw]) continue;
        units.add(head.cells[c], head.positions.size(), length, draw * blocks, of);
      }
    }
    for (std::size_t u = 0; u < units.sums.size(); ++u) {
      values.push_back(units.counts[u] > 0 ? units.sums[u] / units.counts[u] : NAN);
    }
  }
  if (!any) throw Unavailable(fmt::format("{}: {}", request_.methods[method].info->name, reason));
  return values;
}

bool PairedReplay::seeded() const {
  return std::ranges::any_of(request_.methods, [](const MethodChoice& m) { return m.depends_on_seed(); });
}

std::vector<double> PairedReplay::units(std::size_t method, std::size_t budget, Metric metric) const {
  return units(method, budget, [metric](const MetricRow& row) { return double{row[static_cast<std::size_t>(metric)]}; });
}

std::vector<std::size_t> PairedReplay::unit_heads() const {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < results_.heads.size(); ++h) {
    heads.insert(heads.end(), (results_.heads[h].positions.size() + queries_per_block - 1) / queries_per_block, h);
  }
  return heads;
}

Index PairedReplay::tokens(std::size_t budget) const {
  for (std::size_t c = 0; c < results_.configurations.size(); ++c) {
    if (results_.configurations[c].budget == budget) return results_.heads.front().cells[c].budget_tokens;
  }
  return 0;
}

std::string PairedReplay::text() const {
  const std::string out = fmt::format("layers={}", fmt::join(request_.layers, ","));
  return seeded() ? out + fmt::format(";seeds={};unit=head and seed", request_.seeds.size())
                  : out + ";unit=16 queries of a head";
}

std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] - b[i]);
  return out;
}

}  // namespace kvbench
