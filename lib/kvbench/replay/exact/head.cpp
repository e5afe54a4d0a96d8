// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/head.hpp>

#include <algorithm>

#include <kvbench/replay/exact/logit_check.hpp>
#include <kvbench/replay/exact/value_norms.hpp>

namespace kvbench::replay {
namespace {

using trace::Array;

/// Reads what a trace holds of one kv head.
class HeadReader {
 public:
  HeadReader(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place)
      : reader_(reader),
        plan_(plan),
        place_(place),
        info_(reader.info()),
        prompt_(info_.prompts[place.prompt]),
        layer_(prompt_.layers[place.layer]),
        range_(query_range(layer_, plan)) {}

  HeadSlabs read(Uploader& uploader) const {
    HeadSlabs slabs;
    std::vector<float> values = of_kv_head(Array::values);
    measure_values(values, info_.value_dim, layer_, range_, slabs);
    slabs.values = uploader.upload(std::move(values));
    std::vector<float> keys = of_kv_head(Array::keys);
    const float largest_key = largest_magnitude(keys);
    slabs.keys = uploader.upload(std::move(keys));
    slabs.queries = queries(Array::queries, range_.split, range_.end);
    if (layer_.speculated_queries) slabs.speculated = queries(Array::speculated_queries, range_.split, range_.end);
    std::vector<float> observed = queries(Array::queries, range_.first, range_.split);
    check_logits(reader_, place_, largest_key, std::max(largest_magnitude(slabs.queries), largest_magnitude(observed)));
    if (range_.first < range_.split) slabs.observed = uploader.upload(std::move(observed));
    slabs.probes = probes();
    slabs.sketch = sketch();
    if (layer_.column_sums_end == plan_.context)
      slabs.column_sums = uploader.upload(stacked(Array::column_sums, plan_.protect_first, plan_.middle()));
    if (layer_.keys_pre_rope) slabs.keys_pre_rope = uploader.upload(of_kv_head(Array::keys_pre_rope));
    return slabs;
  }

 private:
  std::vector<float> of_kv_head(Array array) const { return reader_.read_head(prompt_, layer_, array, place_.kv_head); }
  std::vector<float> of_query_head(Array array, Index g) const {
    return reader_.read_head(prompt_, layer_, array, place_.kv_head * info_.group() + g);
  }

  /// The numbers [begin, begin + count) of the query heads of the kv head, one head after another.
  std::vector<float> stacked(Array array, Index begin, Index count) const {
    std::vector<float> rows;
    rows.reserve(static_cast<std::size_t>(info_.group() * count));
    for (Index g = 0; g < info_.group(); ++g) {
      const std::vector<float> head = of_query_head(array, g);
      rows.insert(rows.end(), head.begin() + begin, head.begin() + begin + count);
    }
    return rows;
  }
  /// Queries [begin, end), stacked as g*(end-begin) + i.
  std::vector<float> queries(Array array, std::size_t begin, std::size_t end) const {
    return stacked(array, static_cast<Index>(begin) * info_.head_dim, static_cast<Index>(end - begin) * info_.head_dim);
  }

  /// Probes in the order in which measurements take them.
  HeadProbes probes() const {
    const Index tokens = scored_tokens(prompt_, plan_), dv = info_.value_dim;
    if (!layer_.probes || tokens == 0) return {};
    const auto& positions = layer_.query_positions;
    const auto evaluated = positions.begin() + static_cast<std::ptrdiff_t>(range_.split);
    HeadProbes probes{.count = prompt_.probes->count,
                      .first = std::lower_bound(evaluated, positions.end(), prompt_.prompt_tokens) - evaluated,
                      .tokens = tokens};
    probes.gradients.resize(static_cast<std::size_t>(info_.group() * tokens * probes.count * dv));
    for (Index g = 0; g < info_.group(); ++g) {
      const std::vector<float> rows = of_query_head(Array::probes, g);
      for (Index r = 0; r < probes.count; ++r) {
        for (Index t = 0; t < tokens; ++t) {
          std::copy_n(rows.begin() + (r * tokens + t) * dv, dv,
                      probes.gradients.begin() + ((g * tokens + t) * probes.count + r) * dv);
        }
      }
    }
    return probes;
  }

  HeadSketch sketch() const {
    if (!layer_.output_sketch) return {};
    HeadSketch sketch{.columns = layer_.output_sketch->columns};
    sketch.matrix = stacked(Array::output_sketch, 0, info_.value_dim * sketch.columns);
    if (!layer_.residual_norm) return sketch;
    const std::vector<float> norms = reader_.read_head(prompt_, layer_, Array::residual_norm, 0);
    sketch.norms.assign(norms.begin() + static_cast<std::ptrdiff_t>(range_.split), norms.end());
    return sketch;
  }

  const trace::Reader& reader_;
  const PromptPlan& plan_;
  const HeadPlace& place_;
  const trace::TraceInfo& info_;
  const trace::PromptInfo& prompt_;
  const trace::LayerInfo& layer_;
  QueryRange range_;
};

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
  if (!head.map.identity()) view.fixed_log_sum_exp = fixed_log_sum_exp(head.tokens, head.map, view, backend);
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
  return HeadReader(reader, plan, place).read(uploader);
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
