// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/replay.hpp>

#include <algorithm>

#include <kvbench/replay/head_memory.hpp>
#include <kvbench/replay/unit.hpp>
#include <kvbench/replay/workers.hpp>

namespace kvbench {
namespace {

ReplayResults empty_results(const trace::TraceInfo& trace, const ReplayPlan& plan) {
  ReplayResults results;
  results.cells = plan.cells;
  results.protocols.resize(trace.prompts.size(), Protocol::automatic);
  for (const PromptPlan& prompt : plan.prompts) results.protocols[prompt.prompt] = prompt.protocol;
  for (const HeadPlace& place : plan.heads) {
    const auto plan_of = std::ranges::find(plan.prompts, place.prompt, &PromptPlan::prompt);
    const auto& all = trace.prompts[place.prompt].layers[place.layer].query_positions;
    results.heads.push_back({.place = place,
                             .positions = {std::ranges::lower_bound(all, plan_of->context), all.end()},
                             .cells = std::vector<CellResult>(plan.cells.size())});
  }
  return results;
}

}  // namespace

ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const ReplayHooks& hooks) {
  const ReplayPlan plan = make_plan(reader.info(), request);
  ReplayResults results = empty_results(reader.info(), plan);
  {
    const std::unique_ptr<Backend> backend = make_backend(request);
    results.device = backend->device();
    results.isa = backend->isa();
  }
  const Workers workers = plan_workers(reader.info(), plan, request);
  if (hooks.note && !workers.note.empty()) hooks.note(workers.note);
  ReplayRequest fitting = request;
  fitting.threads = workers.threads;
  run_units(plan.units.size(), fitting, hooks, [&](Backend& backend, std::size_t u) {
    run_unit(reader, plan, plan.units[u], request, backend, hooks.stop, results);
  });
  return results;
}

}  // namespace kvbench
