// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/balancekv_vs_uniform.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/contrast.hpp>
#include <kvbench/bounds/paired_replay.hpp>

namespace kvbench {
namespace {

constexpr Index exact_ends = 256;

/// Layers 0, 1 and 4 where the trace has all of them, otherwise up to three of its layers.
std::vector<std::int64_t> figure_layers(const trace::TraceInfo& trace) {
  const std::vector<std::int64_t> all = spread_layers(trace, 1000), figure = {0, 1, 4};
  const bool present = std::ranges::all_of(figure, [&](std::int64_t l) { return std::ranges::find(all, l) != all.end(); });
  return present ? figure : spread_layers(trace, 3);
}

double log_notebook_error(const MetricRow& row) {
  const double error = row[static_cast<std::size_t>(Metric::relerr_balancekv)];
  return error > 0 ? std::log(error) : NAN;
}

void add_rate_rows(CheckContext& context, const PairedReplay& replay, std::size_t method, std::size_t rival,
                   const std::string& names) {
  for (std::size_t b = 0; b < replay.request().budgets.size(); ++b) {
    const std::vector<double> of_method = replay.units(method, b, log_notebook_error),
                              of_rival = replay.units(rival, b, log_notebook_error);
    const Contrast c = contrast(differences(of_rival, of_method));
    CheckRow& row = context.add(CheckKind::claim, fmt::format("{}, rate {}", names, replay.request().budgets[b].text()));
    row.params = replay.text();
    set_claim(row, c, fmt::format("ratio of the errors {:.3f}; logarithm of its inverse", std::exp(-c.mean)));
    row.text += fmt::format(
        "; geometric mean error {:.3g}; the paper gives no number for \"much lower\"; equal numbers of tokens, not equal bytes",
        std::exp(contrast(of_method).mean));
  }
}

void run_balancekv_vs_uniform(CheckContext& context) {
  ReplayRequest request{.methods = {method_choice("balancekv-repo", {{"temp", "0.1"}}), method_choice("uniform-repo"),
                                    method_choice("balancekv", {{"half", "smaller"}}), method_choice("uniform")},
                        .budgets = {},
                        .seeds = {0, 1},
                        .protocol = Protocol::prefill};
  for (const char* rate : {"50%", "12.5%"}) request.budgets.push_back(Budget::parse(rate));
  request.layers = figure_layers(context.reader->info());
  request.protect_first = request.protect_last = exact_ends;
  request.protect_outside = true;
  const PairedReplay replay(context, request);
  add_rate_rows(context, replay, 0, 1, "balancekv-repo (temp 0.1) below uniform-repo");
  add_rate_rows(context, replay, 2, 3, "balancekv (paper's constants) below uniform");
}

}  // namespace

Claim balancekv_vs_uniform() {
  return {.id = "balancekv.vs_uniform",
          .paper = "BalanceKV, arXiv 2502.07861, section 4.1, Fig. 2",
          .statement = "the error is lower than that of uniform sampling at equal rates",
          .method = "balancekv",
          .scope = Scope::trace,
          .run = run_balancekv_vs_uniform};
}

}  // namespace kvbench
