// SPDX-License-Identifier: Apache-2.0
// Tables of Chelsea (arXiv 2506.11418), as errors of the output of attention at 20 % of the cache. The paper reports
// scores of tasks and costs, so that only the order of the methods, or a small difference, can be compared.
// docs/theory/chelsea.tables.md.
//   chelsea.table1  matching inside chunks loses little against mesh, K-Means and bipartite matching without chunks
//   chelsea.table2  Chelsea has the smaller error than StreamingLLM, SnapKV and CaM (also Fig. 4 and Tables 6 to 8)
//   chelsea.table4  the size of a chunk matters little; chunks of 16 are the worst
#include <kvbench/bounds/chelsea/checks.hpp>

#include <algorithm>

#include <kvbench/bounds/trials/contrast.hpp>

namespace kvbench::bounds {
namespace {

constexpr double small_loss = 0.1;  // the paper calls differences small without a number

/// The replay of the first prompt.
replay::PromptPlan first_prompt(const CheckContext& context) {
  replay::ReplayRequest request{.methods = {method_choice("chelsea")}};
  request.prompts = {context.reader->info().prompts.front().id};
  return make_plan(context.reader->info(), request).prompts.front();
}

/// The window of SnapKV: C.1's 100 last tokens of the context, or half of the budget, or those whose queries the trace
/// has, whichever is the least.
Index snapkv_window(const CheckContext& context) {
  const replay::PromptPlan plan = first_prompt(context);
  const auto& positions = context.reader->info().prompts[plan.prompt].layers.front().query_positions;
  Index recorded = 0;
  while (std::ranges::binary_search(positions, plan.context - 1 - recorded)) ++recorded;
  return std::clamp<Index>(std::min(plan.context / 10, recorded), 1, 100);
}

PairedReplay replay_at_20_percent(const CheckContext& context, std::vector<replay::MethodChoice> methods) {
  replay::ReplayRequest request{.methods = std::move(methods), .budgets = {Budget::parse("20%")}, .seeds = {0, 1, 2}};
  request.layers = spread_layers(context.reader->info(), replayed_layers);
  return {context, request};
}

void add_error_row(CheckContext& context, const PairedReplay& replay, const ErrorClaim& claim, const std::string& part,
                   const std::string& remark) {
  add_error_claim(context, {part, "B=20%;" + replay.text()}, replay, claim).text += "; " + remark;
}

replay::MethodChoice chelsea_in_chunks(Index chunk) {
  return method_choice("chelsea", {{"chunk", fmt::to_string(chunk)}});
}

void run_chelsea_table1(CheckContext& context) {
  // The paper's chunks of 256 are small parts of its contexts of 4k to 32k tokens.
  const Index chunk = std::clamp<Index>(first_prompt(context).context / 16, 16, 256);
  const PairedReplay replay = replay_at_20_percent(
      context, {chelsea_in_chunks(chunk), method_choice("bsm"), method_choice("mesh"), method_choice("kmeans")});
  const char* others[] = {"matching without chunks (BSM)", "matching of all pairs (Mesh)", "K-Means"};
  for (std::size_t other = 1; other < 4; ++other) {
    add_error_row(context, replay, {.better = 0, .other = other, .allowed = 1 + small_loss},
                  fmt::format("chunks of {} cost at most 10 % more error than {}", chunk, others[other - 1]),
                  "Table 1 has complexities only; section 5.2 says that chunks cause no significant loss of accuracy");
  }
}

void run_chelsea_table2(CheckContext& context) {
  const PairedReplay replay = replay_at_20_percent(
      context, {method_choice("chelsea"), method_choice("sink", {{"sinks", "4"}}),
                method_choice("snapkv", {{"window", fmt::to_string(snapkv_window(context))}, {"per", "query_head"}}),
                method_choice("cam")});
  const char* others[] = {"StreamingLLM", "SnapKV", "CaM"};
  for (std::size_t other = 1; other < 4; ++other) {
    add_error_row(context, replay, {.better = 0, .other = other},
                  fmt::format("Chelsea has a smaller error than {}", others[other - 1]),
                  "Table 2 and Tables 6 to 8 report scores of tasks, which a trace does not contain");
  }
}

void run_chelsea_table4(CheckContext& context) {
  const PairedReplay replay = replay_at_20_percent(
      context, {method_choice("bsm"), chelsea_in_chunks(16), chelsea_in_chunks(64), chelsea_in_chunks(256)});
  const Index sizes[] = {16, 64, 256};
  for (std::size_t s = 0; s < 3; ++s) {
    add_error_row(context, replay, {.better = s + 1, .other = 0, .allowed = 1 + small_loss},
                  fmt::format("chunks of {} cost at most 10 % more error than none", sizes[s]),
                  "Table 4: scores of 41.83, 42.68 and 42.54 in chunks of 16, 64 and 256, 42.81 without chunks");
  }
  add_error_row(context, replay, {.better = 2, .other = 1}, "chunks of 64 have a smaller error than chunks of 16",
                "Table 4: 42.68 against 41.83, the largest difference between sizes");
}

}  // namespace

Check chelsea_table1() {
  return {.id = "chelsea.table1",
          .paper = "Chelsea, arXiv 2506.11418, Table 1 and section 5.2",
          .statement = "matching inside chunks has about the error of mesh, K-Means and matching without chunks",
          .scope = Scope::trace,
          .run = run_chelsea_table1};
}

Check chelsea_table2() {
  return {.id = "chelsea.table2",
          .paper = "Chelsea, arXiv 2506.11418, Table 2, Fig. 4, Tables 6 to 8",
          .statement = "at 20 % of the cache Chelsea has a smaller error than StreamingLLM, SnapKV and CaM",
          .scope = Scope::trace,
          .run = run_chelsea_table2};
}

Check chelsea_table4() {
  return {.id = "chelsea.table4",
          .paper = "Chelsea, arXiv 2506.11418, Table 4",
          .statement = "the size of the chunks has a small effect on the error",
          .scope = Scope::trace,
          .run = run_chelsea_table4};
}

}  // namespace kvbench::bounds
