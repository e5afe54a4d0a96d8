// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/selection.hpp>

#include <kvbench/core/name.hpp>

namespace kvbench::replay {
namespace {

bool wanted(const std::vector<std::int64_t>& list, std::int64_t value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

/// Whether a user means a prompt: by its id, or by a name that no other prompt has as id or name.
bool is_called(const trace::PromptInfo& prompt, const trace::TraceInfo& trace, const std::string& asked) {
  const auto called = [&](const trace::PromptInfo& other) { return other.id == asked || other.name == asked; };
  return prompt.id == asked || (prompt.name == asked && std::ranges::count_if(trace.prompts, called) == 1);
}
bool selects(const ReplayRequest& request, const trace::TraceInfo& trace, const trace::PromptInfo& prompt) {
  const auto is = [&](const std::string& asked) { return is_called(prompt, trace, asked); };
  return request.prompts.empty() || std::ranges::any_of(request.prompts, is);
}

void check_selection(const trace::TraceInfo& trace, const ReplayRequest& request) {
  refuse_twice(request.prompts, "`prompts`");
  refuse_twice(request.layers, "`layers`");
  refuse_twice(request.kv_heads, "`kv_heads`");
  std::vector<std::string> names, ids;
  std::vector<std::int64_t> layers;
  for (const auto& prompt : trace.prompts) {
    names.insert(names.end(), {prompt.id, prompt.name});
    ids.push_back(prompt.name.empty() ? prompt.id : fmt::format("{} ({})", prompt.id, prompt.name));
    for (const auto& layer : prompt.layers) layers.push_back(layer.layer);
  }
  for (const std::string& asked : request.prompts) {
    const auto is = [&](const trace::PromptInfo& prompt) { return is_called(prompt, trace, asked); };
    if (std::ranges::any_of(trace.prompts, is)) continue;
    throw Error("`prompts`: the trace has no prompt '{}'.{} It has: {}", asked, did_you_mean(asked, names),
                listed(ids));
  }
  std::ranges::sort(layers);
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  for (const std::int64_t layer : request.layers) {
    if (std::ranges::find(layers, layer) == layers.end()) {
      throw Error("`layers`: the trace has no layer {}; it has {}", layer, fmt::join(layers, ", "));
    }
  }
  for (const std::int64_t head : request.kv_heads) {
    if (head < 0 || head >= trace.num_kv_heads) {
      throw Error("`kv_heads`: there is no kv head {}; the trace has 0 to {}", head, trace.num_kv_heads - 1);
    }
  }
}

}  // namespace

std::vector<HeadPlace> select_heads(const trace::TraceInfo& trace, const ReplayRequest& request) {
  check_selection(trace, request);
  std::vector<HeadPlace> heads;
  for (std::size_t p = 0; p < trace.prompts.size(); ++p) {
    const trace::PromptInfo& prompt = trace.prompts[p];
    if (!selects(request, trace, prompt)) continue;
    for (std::size_t l = 0; l < prompt.layers.size(); ++l) {
      if (!wanted(request.layers, prompt.layers[l].layer)) continue;
      for (Index h = 0; h < trace.num_kv_heads; ++h) {
        if (wanted(request.kv_heads, h)) heads.push_back({p, l, h});
      }
    }
  }
  if (heads.empty()) throw Error("`prompts` and `layers` select no layer of the trace");
  return heads;
}

}  // namespace kvbench::replay
