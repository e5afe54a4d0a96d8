// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/plan.hpp>

#include <algorithm>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>

namespace kvbench::replay {
namespace {

constexpr Index default_window = 256;

Index prefill_window(const trace::PromptInfo& prompt, const ReplayRequest& request) {
  const Index n = prompt.num_tokens;
  if (request.window) {
    if (*request.window >= n) {
      throw Error("`window` is {}, which leaves no context in prompt '{}' of {} tokens; choose a window below {}",
                  *request.window, prompt.id, n, n);
    }
    return *request.window;
  }
  return prompt.prompt_tokens < n ? n - prompt.prompt_tokens : std::min(default_window, n / 2);
}

/// The names of the fields that set protected tokens.
const char* protection(const ReplayRequest& request) {
  return request.protect_outside ? "`protect_outside`" : "`protect_first` and `protect_last`";
}

PromptPlan stream_prompt(PromptPlan plan, const trace::PromptInfo& prompt, const ReplayRequest& request) {
  if (request.protect_first > 0 || request.protect_last > 0) {
    throw Error(
        "{} must be left out: `protocol` is stream, which starts from an empty context without tokens to protect",
        protection(request));
  }
  if (request.decoded == Decoded::keep) {
    throw Error(
        "`decoded` is keep, which would leave no tokens to the method: `protocol` is stream, where every token is "
        "decoded");
  }
  plan.base = prompt.prompt_tokens;
  return plan;
}

PromptPlan plan_prompt(const trace::PromptInfo& prompt, std::size_t index, const ReplayRequest& request) {
  PromptPlan plan{.prompt = index, .tokens = prompt.num_tokens};
  const bool decoded = prompt.prompt_tokens < prompt.num_tokens;
  plan.protocol = request.protocol != Protocol::automatic ? request.protocol
                  : decoded                               ? Protocol::decode
                                                          : Protocol::prefill;
  if (plan.protocol == Protocol::decode && !decoded) {
    throw Error(
        "`protocol` is decode, and prompt '{}' has no tokens after its context (prompt_tokens = num_tokens = {}); set "
        "`protocol` to prefill, or dump the trace with decode steps",
        prompt.id, prompt.num_tokens);
  }
  if (plan.protocol == Protocol::stream) return stream_prompt(plan, prompt, request);
  plan.context =
      plan.protocol == Protocol::decode ? prompt.prompt_tokens : prompt.num_tokens - prefill_window(prompt, request);
  plan.base = plan.context;
  plan.protect_first = request.protect_first;
  plan.protect_last = request.protect_last;
  if (plan.protect_first >= plan.context || plan.protect_last >= plan.context - plan.protect_first) {
    throw Error("{}: {} + {} tokens are the whole context of prompt '{}', which has {}; protect fewer tokens",
                protection(request), plan.protect_first, plan.protect_last, prompt.id, plan.context);
  }
  return plan;
}

/// Throws Error where the list has an item twice. Seeds that are counted twice narrow intervals, and equal rows make a
/// table that cannot be read.
template <class T>
void refuse_twice(std::vector<T> list, const char* field) {
  std::ranges::sort(list);
  const auto twice = std::ranges::adjacent_find(list);
  if (twice != list.end()) throw Error("{}: {} is given twice; give it once", field, *twice);
}

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

Index token_bytes(const trace::TraceInfo& trace, const ReplayRequest& request) {
  return trace.token_numbers() * static_cast<Index>(element_bytes(methods::Element::kv, request.kv_element));
}

std::vector<Configuration> list_configurations(const ReplayRequest& request) {
  std::vector<Configuration> configurations;
  for (std::size_t m = 0; m < request.methods.size(); ++m) {
    const bool seeded = request.methods[m].depends_on_seed();
    for (std::size_t b = 0; b < request.budgets.size(); ++b) {
      if (std::ranges::find(request.excluded, std::pair(m, b)) != request.excluded.end()) continue;
      for (std::size_t s = 0; s < (seeded ? request.seeds.size() : 1); ++s) {
        configurations.push_back({m, b, seeded ? request.seeds[s] : 0});
      }
    }
  }
  return configurations;
}

void check_budgets(const ReplayPlan& plan, const ReplayRequest& request) {
  Index largest = 0;
  for (const PromptPlan& prompt : plan.prompts)
    largest = std::max(largest, budget_base(prompt, request.protect_outside));
  for (const Budget& budget : request.budgets) {
    if (budget.is_share()) continue;
    const Index token_bytes = plan.prompts.front().token_bytes, tokens = budget.resolve(0, token_bytes);
    if (tokens < 1) {
      throw Error("`budgets`: {} is less than the {} bytes of one token's key and value", budget.text(), token_bytes);
    }
    if (tokens <= largest) continue;
    if (budget.is_bytes()) {
      throw Error(
          "`budgets`: {} is larger than the context of {} tokens of {} bytes; bytes are those of one kv head: use at "
          "most {}B, or the share of the whole cache that you mean, such as 25%mem",
          budget.text(), largest, token_bytes, largest * token_bytes);
    }
    throw Error("`budgets`: {} is larger than the context of {} tokens; use at most {}, or 100%", budget.text(),
                largest, largest);
  }
}

/// The methods of a request (indices): those that see a kv head, and those that see a layer.
struct MethodGroups {
  std::vector<std::size_t> head, layer;
  bool independent = true;  ///< whether all methods that see the layer can run on each of its kv heads alone

  explicit MethodGroups(const ReplayRequest& request) {
    for (std::size_t m = 0; m < request.methods.size(); ++m) {
      const MethodChoice& choice = request.methods[m];
      const bool sees_layer = choice.info->granularity == methods::Granularity::layer;
      (sees_layer ? layer : head).push_back(m);
      independent &= choice.info->heads_alone(choice.params);
    }
  }
};

void add_work_items(ReplayPlan& plan, const PromptPlan& prompt, std::size_t layer, const std::vector<Index>& heads,
                    const MethodGroups& methods) {
  const std::size_t first = plan.heads.size();
  const auto add = [&](const std::vector<Index>& of, const std::vector<std::size_t>& run, bool sees_layer,
                       std::size_t at) {
    if (!run.empty()) plan.work_items.push_back({prompt, layer, of, run, sees_layer, at});
  };
  for (const Index head : heads) {
    add({head}, methods.head, false, plan.heads.size());
    if (methods.independent) add({head}, methods.layer, true, plan.heads.size());
    plan.heads.push_back({prompt.prompt, layer, head});
  }
  if (!methods.independent) add(heads, methods.layer, true, first);
}

/// The replayed layers in which methods run; where there is none, all of them, as `exact` runs in any.
std::vector<std::int64_t> compressed_layers(const trace::PromptInfo& prompt, const ReplayRequest& request) {
  std::vector<std::int64_t> replayed, compressed;
  for (const trace::LayerInfo& layer : prompt.layers) {
    if (!wanted(request.layers, layer.layer)) continue;
    replayed.push_back(layer.layer);
    if (layer.has_methods()) compressed.push_back(layer.layer);
  }
  return compressed.empty() ? replayed : compressed;
}

}  // namespace

LayerChoice choice_at(const ReplayRequest& request, const Configuration& configuration, std::int64_t layer,
                      Index kv_head) {
  const MethodChoice& choice = request.methods[configuration.method];
  const Budget& budget = request.budgets[configuration.budget];
  return plan_of(choice) ? planned_choice(choice, budget, layer, kv_head) : LayerChoice{choice, budget};
}

std::vector<std::string> budget_hints(const ReplayPlan& plan, const ReplayRequest& request) {
  constexpr Index largest_percentage = 100;
  constexpr double small = 0.05;
  std::vector<std::string> hints;
  Index least = plan.prompts.front().base;
  for (const PromptPlan& prompt : plan.prompts) least = std::min(least, budget_base(prompt, request.protect_outside));
  for (const Budget& budget : request.budgets) {
    if (budget.is_share() || budget.is_bytes()) continue;
    const Index tokens = budget.resolve(0, 1);
    if (tokens > largest_percentage || static_cast<double>(tokens) >= small * static_cast<double>(least)) continue;
    hints.push_back(fmt::format("`budgets`: {0} means {0} tokens of {1}; write {0}% for a share", tokens, least));
  }
  return hints;
}

Index budget_base(const PromptPlan& prompt, bool protect_outside) {
  return prompt.base - (protect_outside ? prompt.protect_first + prompt.protect_last : 0);
}

Index budget_tokens(const PromptPlan& prompt, const Budget& budget, bool protect_outside) {
  const Index base = budget_base(prompt, protect_outside);
  return budget.resolve(base, prompt.token_bytes) + prompt.base - base;
}

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

ReplayPlan make_plan(const trace::TraceInfo& trace, const ReplayRequest& request) {
  refuse_twice(request.budgets, "`budgets`");
  refuse_twice(request.seeds, "`seeds`");
  check_selection(trace, request);
  check_plans(trace, request);
  ReplayPlan plan;
  plan.configurations = list_configurations(request);
  plan.calibration = request.calibration;
  const MethodGroups methods(request);
  for (std::size_t p = 0; p < trace.prompts.size(); ++p) {
    const trace::PromptInfo& prompt = trace.prompts[p];
    if (!selects(request, trace, prompt)) continue;
    plan.prompts.push_back(plan_prompt(prompt, p, request));
    plan.prompts.back().token_bytes = token_bytes(trace, request);
    plan.prompts.back().layers = compressed_layers(prompt, request);
    for (std::size_t l = 0; l < prompt.layers.size(); ++l) {
      if (!wanted(request.layers, prompt.layers[l].layer)) continue;
      const auto& positions = prompt.layers[l].query_positions;
      if (positions.empty() || positions.back() < plan.prompts.back().context) {
        throw Error(
            "layer {} of prompt '{}' has no query at or after position {}, where the context ends; choose a larger "
            "`window`, or dump with --queries last:N",
            prompt.layers[l].layer, prompt.id, plan.prompts.back().context);
      }
      std::vector<Index> heads;
      for (Index h = 0; h < trace.num_kv_heads; ++h) {
        if (wanted(request.kv_heads, h)) heads.push_back(h);
      }
      add_work_items(plan, plan.prompts.back(), l, heads, methods);
    }
  }
  for (WorkItem& item : plan.work_items) {
    item.rounding = std::ranges::count_if(plan.configurations, [&](const Configuration& c) {
      return item.runs(c.method) && request.methods[c.method].info->rounds;
    });
  }
  if (plan.heads.empty()) throw Error("nothing to replay: `prompts` and `layers` select no layer of the trace");
  check_budgets(plan, request);
  return plan;
}

}  // namespace kvbench::replay
