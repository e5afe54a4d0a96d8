// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/checks/known_network.hpp>

#include <array>
#include <bit>

#include <kvbench/bounds/trials/paired_replay.hpp>
#include <kvbench/kernels/normal.hpp>
#include <kvbench/replay/answer/work_item.hpp>

namespace kvbench::faithful {
namespace {

using Net = KnownNetwork;

std::size_t to_size(Index i) { return static_cast<std::size_t>(i); }

template <class T>
std::vector<T> normals(Index count, std::uint32_t array, std::uint32_t seed) {
  std::vector<T> out;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(count); ++i)
    out.push_back(static_cast<T>(standard_normal(philox4x32({{i, array, 0, 0}}, {seed, 0x0b5e}))));
  return out;
}

template <class T>
std::vector<T> rows_of(const std::vector<T>& array, Index first, Index rows, Index width) {
  const auto begin = array.begin() + first * width;
  return {begin, begin + rows * width};
}

trace::TraceInfo trace_info(Index probes) {
  trace::PromptInfo prompt{.id = "0", .num_tokens = Net::tokens, .prompt_tokens = Net::context + Net::unscored};
  prompt.probes = trace::Probes{.count = probes, .tokens = Net::scored};
  for (int l = 0; l < Net::layers; ++l) {
    trace::LayerInfo& layer = prompt.layers.emplace_back();
    layer.layer = l, layer.scale = Net::scale, layer.probes = layer.residual_norm = true;
    layer.output_sketch = {.columns = Net::heads * Net::dv};
    for (Index i = 0; i < Net::queries; ++i) layer.query_positions.push_back(Net::context + i);
  }
  return {.num_layers = Net::layers,
          .num_query_heads = Net::heads,
          .num_kv_heads = Net::kv_heads,
          .head_dim = Net::d,
          .value_dim = Net::dv,
          .rope_type = "none",
          .prompts = {std::move(prompt)}};
}

/// Gradients of sum_t s_t log p_t(y_t), as HeadProbes holds them, of the query heads from `head` on.
std::vector<float> gradients_of(const KnownNetwork& network, Index head) {
  std::vector<float> out;
  for (Index h = head; h < head + Net::group; ++h) {
    for (Index t = 0; t < Net::scored; ++t) {
      std::array<double, Net::dv> mean{};
      for (Index w = 0; w < Net::words; ++w)
        for (std::size_t c = 0; c < mean.size(); ++c)
          mean[c] += network.p[to_size(t * Net::words + w)] * network.weights_of(h, w)[c];
      for (Index r = 0; r < network.probes; ++r) {
        const std::size_t at = to_size(r * Net::scored + t);
        const std::span<const double> own = network.weights_of(h, network.labels[at]);
        for (std::size_t c = 0; c < mean.size(); ++c)
          out.push_back(static_cast<float>(network.signs[at] * (own[c] - mean[c])));
      }
    }
  }
  return out;
}

/// W_O = 1 of the query heads of a kv head: each channel has a column of its own, so that nothing is estimated.
replay::HeadSketch sketch_of(Index kv_head) {
  constexpr Index columns = Net::heads * Net::dv, rows = Net::group * Net::dv;
  replay::HeadSketch sketch{.columns = columns, .norms = std::vector<float>(Net::queries, Net::stream)};
  sketch.matrix.resize(to_size(rows * columns));
  for (Index row = 0; row < rows; ++row) sketch.matrix[to_size(row * columns + kv_head * rows + row)] = 1;
  return sketch;
}

replay::HeadSlabs slabs_of(const KnownNetwork& network, const trace::LayerInfo& layer, const replay::WorkItem& item,
                           Index kv_head, Uploader& uploader) {
  const Index number = layer.layer * Net::kv_heads + kv_head, head = number * Net::group;
  const std::vector<float> values = rows_of(network.values, number * Net::tokens, Net::tokens, Net::dv);
  replay::HeadSlabs slabs;
  measure_values(values, Net::dv, layer, query_range(layer, item.prompt), slabs);
  slabs.keys = uploader.upload(rows_of(network.keys, number * Net::tokens, Net::tokens, Net::d));
  slabs.values = uploader.upload(std::vector(values));
  slabs.queries = rows_of(network.asked, head * Net::queries, Net::group * Net::queries, Net::d);
  slabs.probes = {
      .count = network.probes, .first = Net::unscored, .tokens = Net::scored, .gradients = gradients_of(network, head)};
  slabs.sketch = sketch_of(kv_head);
  return slabs;
}

replay::ReplayFrame frame_of(const trace::TraceInfo& trace, const replay::ReplayPlan& plan,
                             const replay::ReplayRequest& request) {
  replay::ReplayFrame frame{.model_layers = trace.num_layers, .group = trace.group(), .budgets = request.budgets};
  frame.prompts = {{.id = "0",
                    .protocol = plan.prompts[0].protocol,
                    .context_tokens = plan.prompts[0].base,
                    .scored_tokens = scored_tokens(trace.prompts[0], plan.prompts[0])}};
  for (const replay::MethodChoice& choice : request.methods)
    frame.methods.push_back({.name = choice.info->name, .seeded = choice.depends_on_seed()});
  frame.configurations = plan.configurations;
  return frame;
}

replay::ReplayResults run(const KnownNetwork& network, const replay::ReplayRequest& request, Backend& backend) {
  const trace::TraceInfo trace = trace_info(network.probes);
  const replay::RunOptions options{.keep_raw = true};
  const replay::ReplayPlan plan = make_plan(trace, request);
  replay::ReplayResults results{frame_of(trace, plan, request), {}};
  for (std::size_t h = 0; h < plan.heads.size(); ++h) results.heads.push_back(empty_head(trace, plan, h));
  const std::shared_ptr<Uploader> uploader = backend.make_uploader();
  for (const replay::WorkItem& item : plan.work_items) {
    std::vector<replay::HeadSlabs> slabs;
    for (const Index head : item.kv_heads)
      slabs.push_back(slabs_of(network, trace.prompts[0].layers[item.layer], item, head, *uploader));
    run_work_item({.trace = trace,
                   .plan = plan,
                   .request = request,
                   .options = options,
                   .item = item,
                   .results = std::span(results.heads).subspan(item.first_result, item.kv_heads.size()),
                   .stop = nullptr},
                  std::move(slabs), backend);
  }
  set_layer_metrics(results.heads);
  return results;
}

}  // namespace

KnownNetwork::KnownNetwork(std::uint32_t seed, const NetworkOptions& options)
    : probes(8 * static_cast<Index>(options.drawn.size())),
      keys(normals<float>(layers * kv_heads * tokens * d, 0, seed)),
      values(normals<float>(layers * kv_heads * tokens * dv, 1, seed)),
      asked(normals<float>(layers * heads * queries * d, 2, seed)),
      weights(normals<double>(layers * heads * words * dv, 3, seed)) {
  for (Index i = 0; i < kv_heads * tokens; ++i) keys[to_size(i * d)] += options.key_bias;
  for (double& w : weights) w *= options.weight;
  const std::vector<Index>& drawn = options.drawn;
  std::vector<Index> shifts;  // tokens have other most probable words
  for (std::uint32_t t = 0; t < scored; ++t) shifts.push_back(philox4x32({{t, 4, 0, 0}}, {seed, 0x0b5e}).x[0] % words);
  p.resize(to_size(scored * words));
  for (Index t = 0; t < scored; ++t) {
    for (const Index word : drawn)
      p[to_size(t * words + (word + shifts[to_size(t)]) % words)] += 1.0 / static_cast<double>(drawn.size());
  }
  for (std::size_t r = 0; r < to_size(probes); ++r) {
    for (std::size_t t = 0; t < to_size(scored); ++t) {
      labels.push_back((drawn[r % drawn.size()] + shifts[t]) % words);
      signs.push_back(std::popcount(r / drawn.size() & (t + 1)) % 2 == 0 ? 1 : -1);  // rows of a Hadamard matrix
    }
  }
}

KnownNetwork confident_network(std::uint32_t seed, float key_bias) {
  std::vector<Index> drawn(509, 0);
  drawn.insert(drawn.end(), {1, 2, 3});
  return KnownNetwork(seed, {.key_bias = key_bias, .weight = 4, .drawn = drawn});
}

replay::ReplayResults replay_network(const KnownNetwork& network, Backend& backend) {
  return run(network,
             {.methods = {bounds::method_choice("sink"), bounds::method_choice("uniform")},
              .seeds = {0, 1},
              .protocol = replay::Protocol::prefill,
              .window = Net::queries},
             backend);
}

replay::ReplayResults replay_network(const KnownNetwork& network, const replay::MethodChoice& method,
                                     Backend& backend) {
  return run(network,
             {.methods = {method},
              .budgets = {Budget::parse("100%mem")},
              .protocol = replay::Protocol::prefill,
              .window = Net::queries},
             backend);
}

}  // namespace kvbench::faithful
