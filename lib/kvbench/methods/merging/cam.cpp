// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/cam.hpp>

#include <cmath>
#include <map>

#include <kvbench/methods/merging/cam_cache.hpp>
#include <kvbench/methods/stages/computed_once.hpp>
#include <kvbench/methods/stages/prompt_steps.hpp>

namespace kvbench::methods {
namespace {

using Prompt = CamParams::Prompt;

constexpr Index streaming_merge = 16, decode_merge = 32;  // m of the released code

/// Whether column sums replace a replay of the prompt. Throws Unavailable where the trace allows neither.
bool uses_columns(const ContextData& data, const CamParams& params) {
  if (data.tokens == 0 || params.form == CamForm::decode) return false;
  if (params.prompt != Prompt::columns && has_all_queries(data)) return false;
  if (params.prompt != Prompt::stream && data.column_sums) return true;
  const char* lacks = params.prompt == Prompt::columns
                          ? "the column sums up to the end of the context (cam.prompt=columns)"
                      : params.prompt == Prompt::stream ? "the query of every token of the context (cam.prompt=stream)"
                                                        : "the query of every token of the context, or its column sums";
  throw Unavailable(
      fmt::format("cam.form={} merges the prompt's values by the attention that they have received and needs {}, and "
                  "{} queries and {} column sums; dump with --queries all or --column-sums, or choose cam.form=decode, "
                  "which merges decoded tokens only",
                  params.form == CamForm::eval ? "eval" : "streaming", lacks, observed_share(data),
                  data.column_sums ? "has" : "no"));
}

MakeCache prepare(const HeadPrompt& head, const CamParams& params, Backend& backend) {
  const bool columns = uses_columns(head.data(), params);
  const auto prompts = std::make_shared<std::map<Index, CamPrompt>>();  // by budget, shared by seeds
  return [head, params, columns, prompts, &backend](Index budget, std::uint32_t seed) {
    const CamRule rule = cam_rule(params, budget);
    const CamPrompt& prompt = computed_once(*prompts, budget, [&] { return cam_prompt(head, rule, columns, backend); });
    std::vector<Note> notes;
    if (columns && params.prompt == Prompt::when_possible)
      notes.push_back({"prompt=columns (the trace lacks queries)"});
    return std::make_unique<CamCache>(head, rule, prompt, Draws(seed, "cam", head), std::move(notes), backend);
  };
}

}  // namespace

void fields(ParamVisitor& visitor, CamParams& params) {
  visitor.choice("form", params.form, {"streaming", "eval", "decode"}, "released form");
  visitor.integer("start", params.start, {.min = 0},
                  "first tokens to keep; at least one token of the budget remains for recent ones");
  visitor.real("start_share", params.start_share, {.min = 0, .max = 1},
               "the same as a share of the budget; 0: not given");
  visitor.integer(
      "merge", params.merge, {.min = 0},
      "m: values that receive a share of a merged value; 0: 16 (streaming), the window (eval), 32 (decode)");
  visitor.choice("prompt", params.prompt, {"auto", "stream", "columns"},
                 "attention of the prompt: replayed from its queries, or column sums; auto: replayed where the trace "
                 "has all queries");
  fields(visitor, params.group);
}

CamRule cam_rule(const CamParams& params, Index budget) {
  CamRule rule{.form = params.form, .group = params.group, .start = params.start};
  if (params.start_share > 0) {
    // 1e-9: a product such as 0.1 * 30 must not round because of its rounding error.
    const double share = params.start_share * static_cast<double>(budget);
    rule.start = static_cast<Index>(params.form == CamForm::eval ? std::ceil(share - 1e-9) : std::floor(share + 1e-9));
  }
  rule.start = std::min(rule.start, budget - 1);
  rule.recent = budget - rule.start;
  rule.divisor = params.merge > 0                    ? params.merge
                 : params.form == CamForm::eval      ? rule.recent
                 : params.form == CamForm::streaming ? streaming_merge
                                                     : decode_merge;
  return rule;
}

MethodInfo cam_method() {
  return with_params<CamParams>(
      {
          .name = "cam",
          .paper = "CaM, ICML 2024, and its released code",
          .summary = "first tokens and a window; values that leave it are merged at random into the values after them",
          .notes =
              "The released code has three forms (form), which differ in the attention that they sum, the normaliser, "
              "m, and the time of a merge. Two of them also merge in the prompt and need its attention: every query of "
              "the context, or its column sums. Positions are those of the trace: compare with sink.reposition=false.",
          .complexity = {.compress = "O(G n (R + m dv)); prompt=stream O(G n^2 d)",
                         .query = "O(B (d + dv))",
                         .memory = "B (d + G dv) + G B (attention)",
                         .growth = {.compress = 1, .query = 0, .memory = 0}},
          .kind = Kind::merging,
          .granularity = Granularity::query_head,
          .check_data = [](const ContextData& data,
                           const Params& params) { uses_columns(data, params.as<CamParams>()); },
          .streaming = true,
          .seeded = true,
          .observes = true,
          .own_values = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                         .nested_budgets = Property::no("tokens are nested, but the values merged into them are not")},
      },
      prepare);
}

}  // namespace kvbench::methods
