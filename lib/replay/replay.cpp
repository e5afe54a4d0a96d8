// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/replay.hpp>

#include <algorithm>

#include <kvbench/replay/device_memory.hpp>
#include <kvbench/replay/head_memory.hpp>
#include <kvbench/replay/read_ahead.hpp>
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

/// The largest unit that a worker may read ahead: a unit at work on a GPU holds nothing on the host, elsewhere memory bounds
/// it.
std::size_t read_ahead_bytes(const ReplayRequest& request, const Backend& backend, const Workers& workers) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  if (request.read_ahead_bytes) return *request.read_ahead_bytes;
  if (backend.memory()) return 2048 * mib;
  return static_cast<std::size_t>(std::min<double>(256 * mib, workers.spare / workers.threads));
}

}  // namespace

ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const ReplayHooks& hooks) {
  const ReplayPlan plan = make_plan(reader.info(), request);
  ReplayResults results = empty_results(reader.info(), plan);
  const std::unique_ptr<Backend> backend = make_backend(request);
  results.device = backend->name();
  results.isa = backend->isa();
  const Workers fitting = plan_workers(reader.info(), plan, request);
  if (hooks.note && !fitting.note.empty()) hooks.note(fitting.note);
  const std::size_t workers = std::min(static_cast<std::size_t>(fitting.threads), plan.units.size());
  ReplayRequest bounded = request;
  bounded.threads = fitting.threads;
  ReadAhead slabs(reader, plan, workers, read_ahead_bytes(request, *backend, fitting));
  run_units(plan.units.size(), bounded, hooks, [&](Backend& own, std::size_t u) {
    const Unit& unit = plan.units[u];
    try {
      run_unit(reader, plan, unit, request, slabs.take(u, own), own, hooks.stop, results);
    } catch (const OutOfDeviceMemory& error) {
      throw explained(error, {.tokens = unit.prompt.tokens, .heads = unit.kv_heads.size(), .workers = workers});
    }
  });
  return results;
}

}  // namespace kvbench
