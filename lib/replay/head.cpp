// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/head.hpp>

#include <algorithm>

#include <kvbench/replay/value_norms.hpp>

namespace kvbench {
namespace {

using trace::Array;

/// Rows [begin, end) of the `group` query heads of a kv head, stacked as g*(end-begin) + i.
std::vector<float> stack_group(const trace::Reader& reader, const trace::PromptInfo& prompt, const trace::LayerInfo& layer,
                               Array array, const HeadPlace& place, std::size_t begin, std::size_t end) {
  const trace::TraceInfo& info = reader.info();
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

/// Column sums of the group over the method's context, [G, middle].
std::vector<float> context_column_sums(const trace::Reader& reader, const trace::PromptInfo& prompt,
                                       const trace::LayerInfo& layer, const Head& head) {
  std::vector<float> sums;
  for (Index g = 0; g < head.group; ++g) {
    const auto row = reader.read_head(prompt, layer, Array::column_sums, head.place.kv_head * head.group + g);
    sums.insert(sums.end(), row.begin() + head.map.first, row.begin() + head.map.first + head.map.middle);
  }
  return sums;
}

/// The queries before number `end` at or after the start of the method's context: earlier ones see none of it.
void set_observed(const trace::Reader& reader, const trace::PromptInfo& prompt, const trace::LayerInfo& layer, std::size_t end,
                  Head& head, Backend& backend) {
  const auto& positions = layer.query_positions;
  const auto begin = static_cast<std::size_t>(std::ranges::lower_bound(positions, head.map.first) - positions.begin());
  if (begin >= end) return;
  for (std::size_t i = begin; i < end; ++i) {
    head.prompt.observed_positions.push_back(static_cast<std::int32_t>(positions[i] - head.map.first));
  }
  head.prompt.observed = backend.adopt(stack_group(reader, prompt, layer, Array::queries, head.place, begin, end),
                                       head.group * static_cast<Index>(end - begin), reader.info().head_dim);
}

void set_prompt(const trace::Reader& reader, const PromptPlan& plan, const trace::LayerInfo& layer, Head& head,
                Backend& backend) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[head.place.prompt];
  HeadPrompt& view = head.prompt;
  view.prompt = PromptId(static_cast<Index>(head.place.prompt));
  view.prompt_group = prompt.id;
  view.layer = LayerId(layer.layer);
  view.head = KvHeadId(head.place.kv_head);
  view.num_layers = info.num_layers;
  view.num_kv_heads = info.num_kv_heads;
  view.group = head.group;
  view.window = layer.window;
  view.scale = head.tokens.scale;
  view.keys = head.tokens.keys.slice(head.map.first, head.map.middle);
  view.values = head.tokens.values.slice(head.map.first, head.map.middle);
  if (info.rope_type == "default" && layer.rope_theta > 0)
    view.rope = Rope{layer.rope_theta, info.rope_layout == "interleaved"};
  if (plan.protocol == Protocol::stream) view.calibration_keys = head.tokens.keys.slice(0, plan.base);
  if (layer.column_sums_end == plan.context) {
    view.column_sums = backend.adopt(context_column_sums(reader, prompt, layer, head), head.group, head.map.middle);
  }
  if (layer.keys_pre_rope) {
    view.keys_pre_rope =
        backend
            .adopt(reader.read_head(prompt, layer, Array::keys_pre_rope, head.place.kv_head), head.num_tokens(), info.head_dim)
            .slice(head.map.first, head.map.middle);
  }
}

}  // namespace

Index TokenMap::local_end(Index global_end) const {
  if (global_end <= first) return 0;
  if (global_end <= first + middle) return global_end - first;
  return std::max(middle, global_end - first - last);
}

Head load_head(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place, Backend& backend) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  Head head{.place = place, .group = info.group(), .window = layer.window};
  head.map = {plan.protect_first, plan.middle(), plan.protect_last};
  const auto& positions = layer.query_positions;
  const auto observed = static_cast<std::size_t>(std::ranges::lower_bound(positions, plan.context) - positions.begin());
  for (std::size_t i = observed; i < positions.size(); ++i) head.positions.push_back(static_cast<std::int32_t>(positions[i]));
  head.queries = stack_group(reader, prompt, layer, Array::queries, place, observed, positions.size());
  if (layer.speculated_queries) {
    head.speculated = stack_group(reader, prompt, layer, Array::speculated_queries, place, observed, positions.size());
  }
  std::vector<float> values = reader.read_head(prompt, layer, Array::values, place.kv_head);
  ValueNorms norms(values, info.value_dim);
  for (const std::int32_t position : head.positions) {
    norms.move_to(head.first_seen(position), position + 1);
    head.v_op.push_back(norms.operator_norm());
    head.v_fro.push_back(norms.frobenius_norm());
  }
  head.tokens = {
      .keys = backend.adopt(reader.read_head(prompt, layer, Array::keys, place.kv_head), prompt.num_tokens, info.head_dim),
      .values = backend.adopt(std::move(values), prompt.num_tokens, info.value_dim),
      .scale = static_cast<float>(layer.scale),
      .group = head.group,
  };
  set_prompt(reader, plan, layer, head, backend);
  set_observed(reader, prompt, layer, observed, head, backend);
  return head;
}

}  // namespace kvbench
