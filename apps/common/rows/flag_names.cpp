// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/flag_names.hpp>

#include <algorithm>

#include <kvbench/config/field_names.hpp>
#include <kvbench/replay/plan/fields.hpp>

namespace kvbench::app {
namespace {

struct Flag {
  const char* command;  ///< "": every command that has no entry of its own for the field
  const char *field, *flag;
};

/// The flags of the fields that messages of the library name, beside those of requests.
constexpr Flag flags[] = {
    {"", "settings", "--set"},
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
    // budgets by layer
    {"allocate", "menu", "--menu"},
    {"allocate", "methods", "--menu"},
    // comparisons and checks
    {"", "a", "--a"},
    {"", "b", "--b"},
    {"", "checks", "--check"},
    // synthetic traces
    {"synth", "num_tokens", "--tokens"},
    {"synth", "probes", "--probes"},
    {"synth", "prompt_tokens", "--prompt-tokens"},
    {"synth", "num_queries", "--queries"},
    {"synth", "query_heads", "--query-heads"},
    {"synth", "kv_heads", "--kv-heads"},
    {"synth", "head_dim", "--head-dim"},
    {"synth", "value_dim", "--value-dim"},
    {"synth", "clusters", "--clusters"},
    {"synth", "spread", "--spread"},
    {"synth", "key_norm", "--key-norm"},
    {"synth", "key_bias", "--key-bias"},
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
    if (flag == std::end(flags)) {
      if (const replay::RequestField* of_request = replay::find_field(field)) return of_request->flag.name();
      flag = of("");
    }
    return flag == std::end(flags) ? "" : flag->flag;
  });
}

}  // namespace kvbench::app
