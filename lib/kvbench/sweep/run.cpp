// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/run.hpp>

#include <mutex>

#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/workers.hpp>

namespace kvbench::sweep {
namespace {

/// What is left to compute of a step.
struct StepRest {
  ReplayPlan replay;                                 ///< units with the methods that are not finished
  std::vector<std::vector<const CellEntry*>> cells;  ///< [unit][method of the unit]
  std::vector<std::size_t> measured;                 ///< indices into SweepStep::measured

  Index units() const { return static_cast<Index>(replay.units.size() + measured.size()); }
};

StepRest rest_of(const SweepStep& step, const StepLayout& layout, const StepWork& work, const CellsFile& file) {
  StepRest rest{.replay = step.replay, .cells = {}, .measured = {}};
  rest.replay.units.clear();
  std::vector<std::size_t> first_cell;  // of each unit, in StepLayout::cells
  std::size_t next = 0;
  for (const Unit& unit : step.replay.units) {
    first_cell.push_back(next);
    next += unit.methods.size();
  }
  for (const std::size_t u : work.units) {
    Unit unit = step.replay.units[u];
    std::vector<const CellEntry*> cells;
    std::vector<std::size_t> methods;
    for (std::size_t i = 0; i < unit.methods.size(); ++i) {
      const CellEntry& cell = layout.cells[first_cell[u] + i];
      if (file.has(cell.key)) continue;
      methods.push_back(unit.methods[i]);
      cells.push_back(&cell);
    }
    if (methods.empty()) continue;
    unit.methods = std::move(methods);
    rest.replay.units.push_back(std::move(unit));
    rest.cells.push_back(std::move(cells));
  }
  for (const std::size_t h : work.measured) {
    if (!file.has(layout.measures[h].key)) rest.measured.push_back(h);
  }
  return rest;
}

/// The cells of one method out of all cells of the plan.
CellBlock block_of(const ReplayPlan& plan, std::size_t method, std::vector<HeadResult>& heads) {
  CellBlock block(heads.size());
  for (std::size_t h = 0; h < heads.size(); ++h) {
    for (std::size_t c = 0; c < plan.cells.size(); ++c) {
      if (plan.cells[c].method == method) block[h].push_back(std::move(heads[h].cells[c]));
    }
  }
  return block;
}

void replay_rest(const SweepStep& step, const StepRest& rest, CellsFile& file, const ReplayHooks& hooks) {
  replay_units(*step.reader, rest.replay, step.request, step.options, hooks, [&](std::size_t u, std::vector<HeadResult> heads) {
    const Unit& unit = rest.replay.units[u];
    for (std::size_t i = 0; i < unit.methods.size(); ++i) {
      file.add(rest.cells[u][i]->key, block_of(rest.replay, unit.methods[i], heads));
    }
  });
}

void measure_rest(const SweepStep& step, const StepLayout& layout, const StepRest& rest, const std::vector<Measure>& measures,
                  CellsFile& file, const ReplayHooks& hooks) {
  std::mutex adding;
  RunOptions on_host = step.options;
  if (on_host.backend == "cuda") on_host.backend = "cpu";
  run_units(rest.measured.size(), on_host, hooks, [&](Backend& backend, std::size_t i) {
    const std::size_t h = rest.measured[i];
    std::vector<MeasureRow> rows = measure_head(*step.reader, step.measured[h], measures, backend, hooks.stop);
    const std::lock_guard lock(adding);
    file.add(layout.measures[h].key, std::move(rows));
  });
}

}  // namespace

Standing standing_of(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, const CellsFile& file) {
  Standing standing;
  const std::vector<StepWork> work = select_work(plan, shard);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const StepRest rest = rest_of(plan.steps[s], layout.steps[s], work[s], file);
    for (const std::size_t u : work[s].units) standing.cells += plan.steps[s].replay.units[u].methods.size();
    standing.cells += work[s].measured.size();
    standing.finished += rest.measured.size();
    for (const auto& cells : rest.cells) standing.finished += cells.size();
  }
  standing.finished = standing.cells - standing.finished;
  return standing;
}

void run_sweep(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, CellsFile& file,
               const ReplayHooks& hooks) {
  const std::vector<StepWork> work = select_work(plan, shard);
  std::vector<StepRest> rests;
  Index before = 0, total = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    rests.push_back(rest_of(plan.steps[s], layout.steps[s], work[s], file));
    total += rests.back().units();
  }
  ReplayHooks part{.progress = {}, .note = hooks.note, .stop = hooks.stop};
  if (hooks.progress) part.progress = [&](Index done, Index) { hooks.progress(before + done, total); };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const SweepStep& step = plan.steps[s];
    const StepRest& rest = rests[s];
    const config::SweepRun& run = plan.sweep.runs[step.run];
    if (!rest.replay.units.empty()) config::in_terms_of(run, where(run, step), [&] { replay_rest(step, rest, file, part); });
    before += static_cast<Index>(rest.replay.units.size());
    if (!rest.measured.empty()) {
      measure_rest(step, layout.steps[s], rest, run.measures, file, part);
    }
    before += static_cast<Index>(rest.measured.size());
  }
  file.sync();
}

}  // namespace kvbench::sweep
