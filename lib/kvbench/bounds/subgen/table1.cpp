// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Table 1 and section 3.2: with the same cache, k-center with a window answers better than
// heavy hitters (H2O) and than sinks (StreamingLLM), at 65, 58 and 50 % of the cache. Reading: the relative error of
// the output is smaller, at the same number of tokens (the paper's r + k) and at the same memory, metadata included.
// docs/theory/subgen.table1.md.
#include <kvbench/bounds/subgen/checks.hpp>

#include <kvbench/bounds/trials/contrast.hpp>

namespace kvbench::bounds {
namespace {

void run_subgen_table1(CheckContext& context) {
  const std::vector<const char*> budgets = {"65%", "58%", "50%", "65%mem", "58%mem", "50%mem"};
  const char* others[] = {"H2O", "StreamingLLM"};
  const char* scores[] = {"0.86, 0.66, 0.44 against 0.66, 0.58, 0.38", "0.86, 0.66, 0.44 against 0.56, 0.56, 0.38"};
  replay::ReplayRequest request{.methods = {method_choice("subgen-kcenter"),
                                            method_choice("h2o", {{"per", "query_head"}}), method_choice("sink")},
                                .budgets = {},
                                .seeds = {0}};
  for (const char* budget : budgets) request.budgets.push_back(Budget::parse(budget));
  request.layers = spread_layers(context.reader->info(), replayed_layers);
  const PairedReplay replay(context, request);
  for (std::size_t b = 0; b < budgets.size(); ++b) {
    for (std::size_t other = 1; other < 3; ++other) {
      context.poll();
      CheckRow& row = add_error_claim(
          context,
          {fmt::format("B={}, k-center has a smaller error than {}", budgets[b], others[other - 1]), replay.text()},
          replay, {.better = 0, .other = other, .budget = b});
      row.text +=
          fmt::format("; {}; Table 1 reports the accuracy of line retrieval, {}, which a trace does not contain",
                      b < 3 ? "equal numbers of tokens" : "equal memory with all metadata", scores[other - 1]);
    }
  }
}

}  // namespace

Check subgen_table1() {
  return {
      .id = "subgen.table1",
      .paper = "SubGen, arXiv 2402.06082, Table 1 and section 3.2",
      .statement =
          "k-center with a window has a smaller error than H2O and StreamingLLM at equal budgets and at equal memory",
      .method = "subgen-kcenter",
      .scope = Scope::trace,
      .run = run_subgen_table1};
}

}  // namespace kvbench::bounds
