// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/head.hpp>

#include <algorithm>
#include <iterator>

#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/replay/exact/logit_check.hpp>
#include <kvbench/replay/exact/value_norms.hpp>

namespace kvbench::replay {
namespace {

using trace::Array;

/// Rows [begin, end) of the `group` query heads of a kv head, stacked as g*(end-begin) + i.
std::vector<float> stack_group(const trace::Reader& reader, const HeadPlace& place, Array array, std::size_t begin,
                               std::size_t end) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  const auto dim = static_cast<std::size_t>(info.head_dim);
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(info.group()) * (end - begin) * dim);
  for (Index g = 0; g < info.group(); ++g) {
    const std::vector<float> head = reader.read_head(prompt, layer, array, place.kv_head * info.group() + g);
    rows.insert(rows.end(), head.begin() + static_cast<std::ptrdiff_t>(begin * dim),
                head.begin() + static_cast<std::ptrdiff_t>(end * dim));
  }
  return rows;
}

/// Probes in the order in which measurements take them.
HeadProbes read_probes(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place,
                       const QueryRange& range) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  const Index tokens = scored_tokens(prompt, plan);
  if (!layer.probes || tokens == 0) return {};
  const auto& positions = layer.query_positions;
  const auto evaluated = positions.begin() + static_cast<std::ptrdiff_t>(range.split);
  HeadProbes probes{.count = prompt.probes->count,
                    .first = std::lower_bound(evaluated, positions.end(), prompt.prompt_tokens) - evaluated,
                    .tokens = tokens};
  const Index dv = info.value_dim;
  probes.gradients.resize(static_cast<std::size_t>(info.group() * tokens * probes.count * dv));
  for (Index g = 0; g < info.group(); ++g) {
    const std::vector<float> rows = reader.read_head(prompt, layer, Array::probes, place.kv_head * info.group() + g);
    for (Index r = 0; r < probes.count; ++r) {
      for (Index t = 0; t < tokens; ++t) {
        std::copy_n(rows.begin() + (r * tokens + t) * dv, dv,
                    probes.gradients.begin() + ((g * tokens + t) * probes.count + r) * dv);
      }
    }
  }
  return probes;
}

HeadSketch read_sketch(const trace::Reader& reader, const HeadPlace& place, const QueryRange& range) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  if (!layer.output_sketch) return {};
  HeadSketch sketch{.columns = layer.output_sketch->columns};
  for (Index g = 0; g < info.group(); ++g) {
    const auto rows = reader.read_head(prompt, layer, Array::output_sketch, place.kv_head * info.group() + g);
    sketch.matrix.insert(sketch.matrix.end(), rows.begin(), rows.end());
  }
  if (!layer.residual_norm) return sketch;
  const std::vector<float> norms = reader.read_head(prompt, layer, Array::residual_norm, 0);
  sketch.norms.assign(norms.begin() + static_cast<std::ptrdiff_t>(range.split), norms.end());
  return sketch;
}

/// Column sums of the group over the method's context, [G, middle].
std::vector<float> context_column_sums(const trace::Reader& reader, const trace::PromptInfo& prompt,
                                       const trace::LayerInfo& layer, const PromptPlan& plan, const HeadPlace& place) {
  const Index group = reader.info().group();
  std::vector<float> sums;
  for (Index g = 0; g < group; ++g) {
    const auto row = reader.read_head(prompt, layer, Array::column_sums, place.kv_head * group + g);
    sums.insert(sums.end(), row.begin() + plan.protect_first, row.begin() + plan.protect_first + plan.middle());
  }
  return sums;
}

/// The first visible token of a query at this position.
Index first_seen_by(std::int64_t position, Index window) {
  return window > 0 ? std::max<Index>(0, position + 1 - window) : 0;
}

/// The fields of HeadPrompt other than the arrays.
void describe(const trace::TraceInfo& info, const trace::LayerInfo& layer, const Head& head,
              methods::HeadPrompt& view) {
  view.prompt = PromptId(static_cast<Index>(head.place.prompt));
  view.prompt_group = info.prompts[head.place.prompt].id;
  view.layer = LayerId(layer.layer);
  view.head = KvHeadId(head.place.kv_head);
  view.num_layers = info.num_layers;
  view.num_caches = info.num_caches();
  view.depth = info.depth_of(layer.layer);
  view.num_kv_heads = info.num_kv_heads;
  view.group = head.group;
  view.window = layer.window;
  view.scale = head.tokens.scale;
  view.values_in_keys = layer.values_in_keys;
  if (info.rope_type == "default" && layer.rope_theta > 0)
    view.rope = methods::Rope{layer.rope_theta, info.rope_layout == "interleaved"};
}

/// HeadPrompt::fixed_log_sum_exp of a view with observed queries. The protected tokens that a query sees are
/// consecutive among all of them.
Buffer<const float> fixed_log_sum_exp(const Head& head, const methods::HeadPrompt& view, Backend& backend) {
  const TokenMap& map = head.map;
  std::vector<TokenId> fixed = methods::token_range(0, map.first);
  std::ranges::copy(methods::token_range(map.first + map.middle, map.last), std::back_inserter(fixed));
  const auto count_below = [&](Index position) {
    return static_cast<std::int32_t>(position - map.local_end(position));
  };
  std::vector<std::int32_t> first, last;
  for (const std::int32_t local : view.observed_positions) {
    const auto position = static_cast<std::int32_t>(local + map.first);
    first.push_back(count_below(head.first_seen(position)));
    last.push_back(count_below(position + 1));
  }
  const Index rows = view.observed.rows(), queries = std::ssize(first);
  const auto sums = backend.allocate<float>(rows);
  backend.run(kernels::ExactAttention<Buffer>{.queries = view.observed,
                                              .keys = methods::gathered(head.tokens.keys, fixed, backend),
                                              .values = methods::gathered(head.tokens.values, fixed, backend),
                                              .first = backend.adopt(std::move(first), queries),
                                              .last = backend.adopt(std::move(last), queries),
                                              .scale = view.scale,
                                              .out = backend.allocate<float>(rows, view.values.cols()),
                                              .max = backend.allocate<float>(rows),
                                              .log_sum_exp = sums});
  return sums;
}

/// The method's view: the context without the tokens that the harness protects.
void set_prompt(const trace::TraceInfo& info, const PromptPlan& plan, const trace::LayerInfo& layer, HeadSlabs& slabs,
                Head& head, Backend& backend) {
  methods::HeadPrompt& view = head.prompt;
  describe(info, layer, head, view);
  view.keys = head.tokens.keys.slice(head.map.first, head.map.middle);
  view.values = head.tokens.values.slice(head.map.first, head.map.middle);
  if (plan.protocol == Protocol::stream) view.calibration_keys = head.tokens.keys.slice(0, plan.base);
  if (slabs.column_sums.present()) {
    view.column_sums = backend.adopt(std::move(slabs.column_sums), head.group, head.map.middle);
  }
  if (slabs.keys_pre_rope.present()) {
    view.keys_pre_rope = backend.adopt(std::move(slabs.keys_pre_rope), head.num_tokens(), info.head_dim)
                             .slice(head.map.first, head.map.middle);
  }
  if (head.sketch.columns > 0)
    view.output_sketch =
        backend.adopt(std::vector(head.sketch.matrix), head.group * info.value_dim, head.sketch.columns);
  if (!slabs.observed.present()) return;
  const QueryRange range = query_range(layer, plan);
  for (std::size_t i = range.first; i < range.split; ++i) {
    view.observed_positions.push_back(static_cast<std::int32_t>(layer.query_positions[i] - head.map.first));
  }
  view.observed = backend.adopt(std::move(slabs.observed), head.group * static_cast<Index>(range.split - range.first),
                                info.head_dim);
  if (!head.map.identity()) view.fixed_log_sum_exp = fixed_log_sum_exp(head, view, backend);
}

}  // namespace

QueryRange query_range(const trace::LayerInfo& layer, const PromptPlan& plan) {
  const auto& positions = layer.query_positions;
  const auto number = [&](Index position) {
    return static_cast<std::size_t>(std::ranges::lower_bound(positions, position) - positions.begin());
  };
  return {number(plan.protect_first), number(plan.context), positions.size()};
}

void measure_values(std::span<const float> values, Index dv, const trace::LayerInfo& layer, const QueryRange& range,
                    HeadSlabs& slabs) {
  ValueNorms norms(values, dv);
  for (std::size_t i = range.split; i < range.end; ++i) {
    const std::int64_t position = layer.query_positions[i];
    norms.move_to(first_seen_by(position, layer.window), position + 1);
    slabs.v_op.push_back(norms.operator_norm());
    slabs.v_fro.push_back(norms.frobenius_norm());
  }
}

Index TokenMap::local_end(Index global_end) const {
  if (global_end <= first) return 0;
  if (global_end <= first + middle) return global_end - first;
  return std::max(middle, global_end - first - last);
}

Index Head::first_seen(std::int32_t position) const { return first_seen_by(position, window); }

std::size_t slab_bytes(const trace::TraceInfo& info, const HeadPlace& place) {
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  const Index token =
      info.value_dim + info.head_dim * (layer.keys_pre_rope ? 2 : 1) + (layer.column_sums_end ? info.group() : 0);
  const Index query = info.group() * info.head_dim * (layer.speculated_queries ? 2 : 1);
  const Index probes = layer.probes ? prompt.probes->count * prompt.probes->tokens * info.group() * info.value_dim : 0;
  const Index sketch = layer.output_sketch ? info.group() * info.value_dim * layer.output_sketch->columns : 0;
  const Index numbers =
      prompt.num_tokens * token + static_cast<Index>(layer.query_positions.size()) * query + probes + sketch;
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

Index scored_tokens(const trace::PromptInfo& prompt, const PromptPlan& plan) {
  return prompt.probes && plan.context <= prompt.prompt_tokens ? prompt.probes->tokens : 0;
}

HeadSlabs read_head(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place, Uploader& uploader) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  const QueryRange range = query_range(layer, plan);
  const auto stacked = [&](Array array, std::size_t begin, std::size_t end) {
    return stack_group(reader, place, array, begin, end);
  };
  HeadSlabs slabs;
  std::vector<float> values = reader.read_head(prompt, layer, Array::values, place.kv_head);
  measure_values(values, info.value_dim, layer, range, slabs);
  slabs.values = uploader.upload(std::move(values));
  std::vector<float> keys = reader.read_head(prompt, layer, Array::keys, place.kv_head);
  const float largest_key = largest_magnitude(keys);
  slabs.keys = uploader.upload(std::move(keys));
  slabs.queries = stacked(Array::queries, range.split, range.end);
  if (layer.speculated_queries) slabs.speculated = stacked(Array::speculated_queries, range.split, range.end);
  std::vector<float> observed = stacked(Array::queries, range.first, range.split);
  check_logits(reader, place, largest_key, std::max(largest_magnitude(slabs.queries), largest_magnitude(observed)));
  if (range.first < range.split) slabs.observed = uploader.upload(std::move(observed));
  slabs.probes = read_probes(reader, plan, place, range);
  slabs.sketch = read_sketch(reader, place, range);
  if (layer.column_sums_end == plan.context) {
    slabs.column_sums = uploader.upload(context_column_sums(reader, prompt, layer, plan, place));
  }
  if (layer.keys_pre_rope) {
    slabs.keys_pre_rope = uploader.upload(reader.read_head(prompt, layer, Array::keys_pre_rope, place.kv_head));
  }
  return slabs;
}

Head place_head(const trace::TraceInfo& info, const PromptPlan& plan, const HeadPlace& place, HeadSlabs slabs,
                Backend& backend) {
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  Head head{.place = place, .group = info.group(), .window = layer.window};
  head.map = {plan.protect_first, plan.middle(), plan.protect_last};
  const auto evaluated = std::ranges::lower_bound(layer.query_positions, plan.context);
  for (auto p = evaluated; p != layer.query_positions.end(); ++p)
    head.positions.push_back(static_cast<std::int32_t>(*p));
  head.queries = std::move(slabs.queries);
  head.speculated = std::move(slabs.speculated);
  head.v_op = std::move(slabs.v_op);
  head.v_fro = std::move(slabs.v_fro);
  head.probes = std::move(slabs.probes);
  head.sketch = std::move(slabs.sketch);
  head.tokens = {
      .keys = backend.adopt(std::move(slabs.keys), prompt.num_tokens, info.head_dim),
      .values = backend.adopt(std::move(slabs.values), prompt.num_tokens, info.value_dim),
      .scale = static_cast<float>(layer.scale),
      .group = head.group,
      .values_in_keys = layer.values_in_keys,
  };
  set_prompt(info, plan, layer, slabs, head, backend);
  return head;
}

Head load_head(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place, Backend& backend) {
  return place_head(reader.info(), plan, place, read_head(reader, plan, place, *backend.make_uploader()), backend);
}

std::shared_ptr<const methods::HeadPrompt> load_calibration(const Calibration& calibration, std::int64_t layer,
                                                            Index kv_head, Backend& backend) {
  const trace::PromptInfo& prompt = calibration.trace->info().prompts[calibration.prompt];
  const auto found = std::ranges::find(prompt.layers, layer, &trace::LayerInfo::layer);
  if (found == prompt.layers.end()) throw Error("{} has no layer {}", calibration.text(), layer);
  const PromptPlan whole{.prompt = calibration.prompt,
                         .tokens = prompt.num_tokens,
                         .context = prompt.num_tokens,
                         .base = prompt.num_tokens};
  const HeadPlace place{calibration.prompt, static_cast<std::size_t>(found - prompt.layers.begin()), kv_head};
  return std::make_shared<const methods::HeadPrompt>(load_head(*calibration.trace, whole, place, backend).prompt);
}

}  // namespace kvbench::replay
