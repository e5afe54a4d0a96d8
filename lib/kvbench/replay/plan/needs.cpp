// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/needs.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/sets.hpp>

namespace kvbench::replay {
namespace {

/// Messages hold for models that run, too: what these lack only traces have.
std::optional<std::string> lacking_part(methods::Part part, const trace::LayerInfo& layer, Index begin, Index end) {
  const auto& positions = layer.query_positions;
  const auto observed = std::ranges::lower_bound(positions, begin);
  switch (part) {
    case methods::Part::observed_queries:
      if (observed != positions.end() && *observed < end) return std::nullopt;
      return "there are no queries inside the context; replay a trace that has them (--queries all, or last:N with N "
             "above the window)";
    case methods::Part::column_sums:
      if (layer.column_sums_end == end) return std::nullopt;
      return fmt::format(
          "there are no column sums up to the end of the context ({} tokens); replay a trace that has them "
          "(--column-sums)",
          end);
    case methods::Part::keys_pre_rope:
      if (layer.keys_pre_rope) return std::nullopt;
      return "there are no keys before RoPE; replay a trace that has them (--pre-rope)";
    case methods::Part::speculated_queries:
      if (layer.speculated_queries) return std::nullopt;
      return "there are no speculated queries; replay a trace that has them (--speculated)";
    case methods::Part::output_sketch:
      if (layer.output_sketch) return std::nullopt;
      return "there are no sketches of W_O; replay a trace of kvdump or kvbench-dump-hf, which have them without "
             "--no-sketch";
  }
  return std::nullopt;
}

/// The reason why the method cannot run on the tokens [begin, end) of this layer as its context, with the remedy;
/// absent where it can.
std::optional<std::string> lacking(const methods::MethodInfo& info, const trace::LayerInfo& layer, Index begin,
                                   Index end) {
  if (layer.softcap != 0) {
    return fmt::format("layer {} caps its logits at {}, which replays do not support", layer.layer, layer.softcap);
  }
  if (layer.window > 0 && !info.windowed) {
    return fmt::format("layer {} has a sliding window of {} tokens, which bounds its cache; methods run in the others",
                       layer.layer, layer.window);
  }
  for (const methods::Part part : info.needs) {
    if (auto reason = lacking_part(part, layer, begin, end)) return reason;
  }
  return std::nullopt;
}

/// What the method sees of the context (see TokenMap).
methods::ContextData data_of(const trace::LayerInfo& layer, const PromptPlan& prompt) {
  methods::ContextData data{.tokens = prompt.middle(), .column_sums = layer.column_sums_end == prompt.context};
  for (const std::int64_t position : layer.query_positions) {
    if (position < prompt.protect_first || position >= prompt.context) continue;
    data.observed.push_back(static_cast<std::int32_t>(position - prompt.protect_first));
  }
  return data;
}

bool has_every_step(const trace::LayerInfo& layer, const PromptPlan& prompt) {
  const auto& positions = layer.query_positions;
  const auto steps = positions.end() - std::ranges::lower_bound(positions, prompt.context);
  return steps == positions.back() + 1 - prompt.context;
}

/// The methods of `all` with their default parameters.
std::vector<MethodChoice> default_choices() {
  std::vector<MethodChoice> choices;
  for (const auto& [method, settings] : methods::rows_of_set("all")) {
    if (settings.empty()) choices.push_back({method, method->bind({})});
  }
  return choices;
}

bool runs(const MethodChoice& choice, const trace::PromptInfo& prompt, const PromptPlan& plan) {
  try {
    for (const trace::LayerInfo& layer : prompt.layers) {
      if (layer.has_methods()) check_available(choice, layer, plan, plan.appends());
    }
  } catch (const methods::Unavailable&) {
    return false;
  }
  return true;
}

/// Of a format whose engine has another order of channels than the trace.
std::string order_note(const MethodChoice& choice, const trace::TraceInfo& trace) {
  const methods::Engine engine = choice.info->engine;
  const std::string order = trace.channel_order();
  const std::string_view deployed = methods::rope_layout_in(engine, trace.arch);
  if (order.empty() || deployed.empty() || order == deployed) return "";
  return fmt::format("rounded with channels in the order {}; {}, whose format it is, has them in the order {}", order,
                     methods::name_of(engine), deployed);
}

}  // namespace

void check_available(const MethodChoice& method, const trace::LayerInfo& layer, const PromptPlan& prompt,
                     bool decodes) {
  const methods::MethodInfo& info = *method.info;
  if (prompt.protocol == Protocol::stream && !info.streaming) {
    throw methods::Unavailable(
        fmt::format("{} compresses a whole context at once; it is not a streaming algorithm", info.name));
  }
  if (info.whole_context && prompt.protect_first + prompt.protect_last > 0) {
    throw methods::Unavailable(fmt::format("{} refers to tokens of the whole context; omit --protect", info.name));
  }
  if (const auto reason = lacking(info, layer, prompt.protect_first, prompt.context))
    throw methods::Unavailable(*reason);
  if (layer.values_in_keys) {
    if (const std::string reason = methods::against_values_in_keys(info, method.params); !reason.empty())
      throw methods::Unavailable(reason);
  }
  if (info.check_data) info.check_data(data_of(layer, prompt), method.params);
  if (info.observes && decodes && !has_every_step(layer, prompt)) {
    throw methods::Unavailable(
        "the method observes every decode step, and there are no queries of some steps; replay a trace that has them "
        "(--queries all)");
  }
}

std::string why_nowhere(const MethodChoice& method, const trace::PromptInfo& prompt, const PromptPlan& plan) {
  std::string why;
  for (const trace::LayerInfo& layer : prompt.layers) {
    if (!layer.has_methods()) continue;
    try {
      check_available(method, layer, plan, plan.appends());
      return "";
    } catch (const methods::Unavailable& reason) {
      why = reason.what();
    }
  }
  return why;
}

std::vector<RunnableMethods> runnable_methods(const trace::TraceInfo& trace) {
  const std::vector<MethodChoice> choices = default_choices();
  trace::TraceInfo alone =
      trace;  // with one prompt at a time: planning takes time in proportion to the prompts of the trace
  std::vector<RunnableMethods> out;
  for (const trace::PromptInfo& prompt : trace.prompts) {
    alone.prompts = {prompt};
    RunnableMethods& methods = out.emplace_back();
    try {
      const ReplayPlan plan = make_plan(alone, {});
      if (std::ranges::none_of(prompt.layers, &trace::LayerInfo::has_methods))
        throw Error("every layer has a sliding window or caps its logits, and methods run in neither");
      for (const MethodChoice& choice : choices)
        (runs(choice, prompt, plan.prompts.front()) ? methods.can : methods.cannot).push_back(choice.info->name);
    } catch (const Error& error) {
      methods = {.error = error.what()};
    }
  }
  return out;
}

std::vector<methods::Note> notes_on(const MethodChoice& choice, const ReplayRequest& request,
                                    const trace::TraceInfo& trace, bool whole) {
  std::vector<methods::Note> notes;
  if (request.calibration && choice.info->calibrates() && !whole)
    notes.push_back({.text = "calibrated on " + request.calibration->text()});
  else if (choice.info->calibrates_on == methods::CalibratesOn::text && !whole)
    notes.push_back({.text = std::string(calibrated_on_evaluated)});
  if (const std::string note = order_note(choice, trace); !note.empty() && !whole) notes.push_back({.text = note});
  return notes;
}

}  // namespace kvbench::replay
