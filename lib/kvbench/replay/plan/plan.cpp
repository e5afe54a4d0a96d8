// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/plan.hpp>

#include <algorithm>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/replay/plan/selection.hpp>

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

/// The first heads that have the same value of a field.
std::span<const HeadPlace> first_of(std::span<const HeadPlace> heads, std::size_t HeadPlace::*field) {
  const auto end = std::ranges::find_if(heads, [&](const HeadPlace& h) { return h.*field != heads.front().*field; });
  return {heads.begin(), end};
}

/// Adds the work items of a layer, whose heads are given.
void add_work_items(ReplayPlan& plan, const PromptPlan& prompt, std::span<const HeadPlace> heads,
                    const MethodGroups& methods) {
  const std::size_t layer = heads.front().layer, first = plan.heads.size();
  const auto add = [&](const std::vector<Index>& of, const std::vector<std::size_t>& run, bool sees_layer,
                       std::size_t at) {
    if (!run.empty()) plan.work_items.push_back({prompt, layer, of, run, sees_layer, at});
  };
  std::vector<Index> kv_heads;
  for (const HeadPlace& head : heads) {
    add({head.kv_head}, methods.head, false, plan.heads.size());
    if (methods.independent) add({head.kv_head}, methods.layer, true, plan.heads.size());
    kv_heads.push_back(head.kv_head);
    plan.heads.push_back(head);
  }
  if (!methods.independent) add(kv_heads, methods.layer, true, first);
}

/// Adds what is replayed of a prompt, whose heads are given.
void add_prompt(ReplayPlan& plan, const trace::TraceInfo& trace, std::span<const HeadPlace> heads,
                const ReplayRequest& request, const MethodGroups& methods) {
  const trace::PromptInfo& prompt = trace.prompts[heads.front().prompt];
  PromptPlan planned = plan_prompt(prompt, heads.front().prompt, request);
  planned.token_bytes =
      trace.token_numbers() * static_cast<Index>(element_bytes(methods::Element::kv, request.kv_element));
  std::vector<std::span<const HeadPlace>> layers;
  for (auto rest = heads; !rest.empty(); rest = rest.subspan(layers.back().size()))
    layers.push_back(first_of(rest, &HeadPlace::layer));
  std::vector<std::int64_t> replayed;
  for (const auto& of_layer : layers) {
    const trace::LayerInfo& layer = prompt.layers[of_layer.front().layer];
    if (layer.query_positions.empty() || layer.query_positions.back() < planned.context)
      throw Error(
          "layer {} of prompt '{}' has no query at or after position {}, where the context ends; choose a larger "
          "`window`, or dump with --queries last:N",
          layer.layer, prompt.id, planned.context);
    replayed.push_back(layer.layer);
    if (layer.has_methods()) planned.layers.push_back(layer.layer);
  }
  if (planned.layers.empty()) planned.layers = replayed;  // `exact` runs in any
  for (const auto& of_layer : layers) add_work_items(plan, planned, of_layer, methods);
  plan.prompts.push_back(std::move(planned));
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

double outside_bytes(const PromptPlan& prompt, bool protect_outside) {
  return static_cast<double>((prompt.base - budget_base(prompt, protect_outside)) * prompt.token_bytes);
}

ReplayPlan make_plan(const trace::TraceInfo& trace, const ReplayRequest& request) {
  refuse_twice(request.budgets, "`budgets`");
  refuse_twice(request.seeds, "`seeds`");
  const std::vector<HeadPlace> heads = select_heads(trace, request);
  check_plans(trace, request);
  ReplayPlan plan;
  plan.configurations = list_configurations(request);
  plan.calibration = request.calibration;
  const MethodGroups methods(request);
  for (std::span<const HeadPlace> rest = heads; !rest.empty();) {
    const auto of_prompt = first_of(rest, &HeadPlace::prompt);
    add_prompt(plan, trace, of_prompt, request, methods);
    rest = rest.subspan(of_prompt.size());
  }
  for (WorkItem& item : plan.work_items) {
    item.rounding = std::ranges::count_if(plan.configurations, [&](const Configuration& c) {
      return item.runs(c.method) && request.methods[c.method].info->rounds;
    });
  }
  check_budgets(plan, request);
  return plan;
}

}  // namespace kvbench::replay
