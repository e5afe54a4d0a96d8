// SPDX-License-Identifier: Apache-2.0
#include <apps/common/flag_names.hpp>

#include <algorithm>

#include <kvbench/config/field_names.hpp>

namespace kvbench::app {
namespace {

struct Flag {
  const char* command;  ///< "": every command that has no entry of its own for the field
  const char *field, *flag;
};

/// The flags of all fields that messages of the library name.
constexpr Flag flags[] = {
    // what a replay computes
    {"", "methods", "--method"},
    {"", "settings", "--set"},
    {"", "budgets", "--budget"},
    {"", "seeds", "--seeds"},
    {"", "calibration", "--calibrate"},
    {"", "protocol", "--protocol"},
    {"", "decoded", "--decoded"},
    {"", "window", "--window"},
    {"", "layers", "--layers"},
    {"", "kv_heads", "--heads"},
    {"", "prompts", "--prompts"},
    {"", "protect_first", "--protect"},
    {"", "protect_last", "--protect"},
    {"", "protect_outside", "--protect-outside"},
    // how it runs
    {"", "backend", "--device"},
    {"", "isa", "--isa"},
    {"", "threads", "--threads"},
    {"", "memory", "--memory"},
    // sweeps
    {"", "traces", "--trace"},
    {"", "shard", "--shard"},
    {"", "resume", "--resume"},
    // documents in the loop of a model
    {"eval", "context_tokens", "--context"},
    {"eval", "score_tokens", "--score"},
    {"eval", "documents", "--documents"},
    {"eval", "questions", "--questions"},
    {"eval", "chat", "--chat"},
    // comparisons and checks
    {"", "a", "--a"},
    {"", "b", "--b"},
    {"", "checks", "--check"},
    // synthetic traces
    {"synth", "num_tokens", "--tokens"},
    {"synth", "prompt_tokens", "--prompt-tokens"},
    {"synth", "num_queries", "--queries"},
    {"synth", "query_heads", "--query-heads"},
    {"synth", "kv_heads", "--kv-heads"},
    {"synth", "head_dim", "--head-dim"},
    {"synth", "value_dim", "--value-dim"},
    {"synth", "clusters", "--clusters"},
    {"synth", "spread", "--spread"},
    {"synth", "key_norm", "--key-norm"},
    {"synth", "column_queries", "--column-queries"},
    {"synth", "speculation_error", "--speculated"},
};

}  // namespace

std::string with_flags(std::string_view message, std::string_view command) {
  return config::rename_fields(message, [&](std::string_view field) -> std::string {
    const auto of = [&](std::string_view whose) {
      return std::ranges::find_if(flags, [&](const Flag& f) { return f.command == whose && f.field == field; });
    };
    const Flag* flag = of(command);
    if (flag == std::end(flags)) flag = of("");
    return flag == std::end(flags) ? "" : flag->flag;
  });
}

}  // namespace kvbench::app
