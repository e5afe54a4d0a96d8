// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/fields.hpp>

#include <algorithm>

namespace kvbench::replay {

/// Converts to anything, so that a number of them shows how many members an aggregate has.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class T, class... A>
consteval std::size_t members_of() {
  if constexpr (requires { T{A{}..., Anything{}}; })
    return members_of<T, A..., Anything>();
  else
    return sizeof...(A);
}

namespace {

constexpr FieldCommands replay_alone{.replay = true}, replay_eval{.replay = true, .eval = true},
    all_but_validate{.replay = true, .eval = true, .allocate = true};

const RequestField request_table[] = {
    {"methods",
     &ReplayRequest::methods,
     {"-m,--method",
      all_but_validate,
      "Methods, with parameters in brackets such as \"snapkv[window=64,kernel=5]\", all, families (the usual ones of "
      "every family), a family such as eviction, or FILE.py:NAME for a method of your own (repeat, or separate with "
      "commas); all,-knorm leaves knorm out",
      {{&FieldCommands::eval,
        "Methods, with parameters in brackets such as \"snapkv[window=64,kernel=5]\", or all, families or a family "
        "such as eviction (repeat, or separate with commas); all,-knorm leaves knorm out"},
       {&FieldCommands::allocate,
        "Methods that a layer may get, with parameters in brackets, such as \"h2o,h2o+q5_1,q8_0\" (repeat, or "
        "separate with commas)",
        "--menu"}}},
     {"methods", "methods", R"(["snapkv", { name = "subgen", t = [2, 4] }])",
      "names, \"all\", \"families\", families such as \"eviction\", \"-knorm\" to leave it out, or tables with "
      "parameters; lists of values expand to all combinations"}},
    {"budgets",
     &ReplayRequest::budgets,
     {"-b,--budget",
      all_but_validate,
      "Budgets: tokens per kv head, shares of the context or bytes of keys and values per kv head (256,25%,512KiB), or "
      "limits of the memory, the fast memory or the reads relative to the full cache (25%mem,25%fast,25%read). "
      "Default: 25%",
      {{&FieldCommands::eval,
        "Budgets, as in kvbench replay: 256, 25%, 512KiB, 25%mem, 25%fast, 25%read; default: 25%mem. Beside --sweep: "
        "those of its budgets that are evaluated; default: all"},
       {&FieldCommands::allocate,
        "Budgets of memory of all layers together, a plan for each, such as 25%mem,12.5%mem. Default: 25%mem"}}},
     {"budgets", "numbers of tokens such as 256, shares such as \"25%\", and bytes such as \"512KiB\"",
      R"(["25%", 256, "512KiB"])",
      "shares of the context, tokens per kv head, or bytes of keys and values per kv head"}},
    {"calibration",
     &ReplayRequest::calibration,
     {"--calibrate", replay_alone,
      "TRACE.h5[:PROMPT]: another text of the same model, on which methods calibrate what a deployment computes "
      "beforehand (infinigen, kvquant-nofisher, triattention; default: the evaluated context)"},
     {"calibrate", "TRACE.h5 or TRACE.h5:PROMPT", R"("../traces/smollm2-135m.h5:1")",
      "another text, on which methods calibrate, such as infinigen and kvquant-nofisher; relative to the folder of "
      "this file"},
     {.told = "calibrated on {}"}},
    {"seeds",
     &ReplayRequest::seeds,
     {"--seeds", replay_eval, "Number of seeds, or a list such as 3,4,7"},
     {"seeds", "a number of seeds, or a list of them", "5",
      "number of seeds, or a list such as [3, 4]; for methods with randomness"}},
    {"layers",
     &ReplayRequest::layers,
     {"--layers",
      {.replay = true, .eval = true, .validate = true},
      "Layers of the model, such as 0,1,8 or 0-3 (default: all, those of the trace)",
      {{&FieldCommands::eval,
        "Layers in which methods run, such as 0,1,8 or 0-3, or all (the default). The others stay exact"}}},
     {"layers", "numbers of layers", "[0, 4]", "layers of the model; default: all layers of the trace"},
     {.of_evaluation = true}},
    {"kv_heads",
     &ReplayRequest::kv_heads,
     {"--heads", {.replay = true, .validate = true}, "kv heads (default: all)"},
     {"heads", "numbers of kv heads", "[0]", "kv heads; default: all"}},
    {"prompts",
     &ReplayRequest::prompts,
     {"--prompts",
      {.replay = true, .allocate = true},
      "Prompt groups (default: all)",
      {{&FieldCommands::allocate, "Prompt groups that are the documents (default: all)"}}},
     {"prompts", "names of prompt groups", R"(["0"])", "prompt groups; default: all"}},
    {"protocol",
     &ReplayRequest::protocol,
     {"--protocol",
      replay_eval,
      "prefill, decode, stream, or auto: decode where the trace has decoded tokens, else prefill",
      {{&FieldCommands::eval,
        "decode (the default): the context is read with exact attention and then compressed; stream: it passes through "
        "the compressed cache, too, as in an engine, by methods that may begin with an empty cache"}}},
     {"protocol", "names", R"(["prefill", "decode"])", "auto, prefill, decode, stream; one pass per protocol"}},
    {"decoded",
     &ReplayRequest::decoded,
     {"--decoded", replay_alone, "Whether the method compresses decoded tokens or they are kept exactly: method, keep"},
     {"decoded", "a name", R"("method")",
      "decode: method (the method compresses decoded tokens) or keep (they are kept exactly)"},
     {.told = "decoded tokens kept exactly", .stored = true, .of_evaluation = true}},
    {"window",
     &ReplayRequest::window,
     {"--window", replay_alone,
      "prefill: number of last tokens that are kept exactly (default: tokens after the prompt, or 256)"},
     {"window", "a number of tokens, at least 1", "256", "prefill: number of last tokens that are kept exactly"},
     {.least = 1}},
    {"protect_first",
     Protection{.outside = false},
     {"--protect", replay_eval,
      "FIRST,LAST: numbers of tokens of the context that are kept exactly, inside the budget"},
     {"protect", "[first, last] tokens", "[4, 64]",
      "numbers of first and last tokens of the context that are kept exactly, inside the budget"},
     {.told = "protects {} inside the budget", .stored = true, .of_evaluation = true}},
    {"protect_outside",
     Protection{.outside = true},
     {"--protect-outside", replay_alone, "FIRST,LAST: the same outside the budget; shares refer to the other tokens"},
     {"protect_outside", "[first, last] tokens", "[256, 0]", "the same outside the budget; give one of the two"},
     {.told = "protects {} outside the budget", .stored = true, .of_evaluation = true}},
    {"dense_layers",
     &ReplayRequest::dense_layers,
     {"--dense-layers", replay_eval, "Number of first layers of the model that are kept exactly"},
     {"dense_layers", "a number of layers", "2", "number of first layers that are kept exactly"},
     {.told = "{} dense layers", .stored = true, .of_evaluation = true}},
    {"recall_sinks",
     &ReplayRequest::recall_sinks,
     {"--recall-sinks", replay_alone, "Count protected tokens in recall, also those that a method keeps itself"},
     {"recall_sinks", "true or false", "false", "whether recall counts protected tokens"},
     {.stored = true, .of_evaluation = true}},
    {"standalone",
     &ReplayRequest::standalone,
     {"--standalone",
      {.runs = true},
      "Compute every configuration alone: nothing is shared between budgets, and times and flops are those of the "
      "configuration itself (slow)"},
     {},
     {.stored = true}},
    {"kv_element",
     &ReplayRequest::kv_element,
     {"--kv-dtype",
      {.runs = true, .eval = true},
      "Element type of the cache in a deployment, for the byte columns: bf16, f16 or f32"},
     {},
     {.stored = true}},
    {"rank_by", &ReplayRequest::rank_by, {"--rank-by", {.runs = true}, ranking_help()}, {}, {.told = "ranked by {}"}},
};

// protect_last shares a row with protect_first, and `excluded` follows from the key `exclude` of sweeps.
static_assert(members_of<ReplayRequest>() == std::size(request_table) + 2, "a member of ReplayRequest has no row");

}  // namespace

FieldFlag FieldFlag::of_command(bool FieldCommands::*command) const {
  FieldFlag flag = *this;
  for (const FieldWords& words : own) {
    if (words.of != command) continue;
    flag.help = words.help;
    if (!words.names.empty()) flag.names = words.names;
  }
  return flag;
}

std::span<const RequestField> request_fields() { return request_table; }

const RequestField* find_field(std::string_view name) {
  if (name == "protect_last") name = "protect_first";
  const RequestField* found = std::ranges::find(request_table, name, &RequestField::name);
  return found == std::end(request_table) ? nullptr : found;
}

}  // namespace kvbench::replay
