// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/run.hpp>

#include <algorithm>
#include <iterator>
#include <mutex>

#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/devices.hpp>

namespace kvbench::sweep {
namespace {

/// The part of a step that remains to be computed.
struct StepRest {
  replay::ReplayPlan replay;                         ///< its work items, with their unfinished methods
  std::vector<std::vector<const CellEntry*>> cells;  ///< [work item][method of the work item]
  std::vector<std::size_t> measured;                 ///< indices into SweepStep::measured

  Index items() const { return static_cast<Index>(replay.work_items.size() + measured.size()); }
};

StepRest rest_of(const SweepStep& step, const StepLayout& layout, const StepWork& work, const CellsFile& file) {
  StepRest rest{.replay = step.replay};
  rest.replay.work_items.clear();
  std::vector<std::size_t> first_cell;  // by work item, index into StepLayout::cells
  std::size_t next = 0;
  for (const replay::WorkItem& item : step.replay.work_items) {
    first_cell.push_back(next);
    next += item.methods.size();
  }
  for (const std::size_t u : work.work_items) {
    replay::WorkItem item = step.replay.work_items[u];
    std::vector<const CellEntry*> cells;
    std::vector<std::size_t> methods;
    for (std::size_t i = 0; i < item.methods.size(); ++i) {
      const CellEntry& cell = layout.cells[first_cell[u] + i];
      if (file.has(cell.key)) continue;
      methods.push_back(item.methods[i]);
      cells.push_back(&cell);
    }
    if (methods.empty()) continue;
    item.methods = std::move(methods);
    rest.replay.work_items.push_back(std::move(item));
    rest.cells.push_back(std::move(cells));
  }
  for (const std::size_t h : work.measured) {
    if (!file.has(layout.measures[h].key)) rest.measured.push_back(h);
  }
  return rest;
}

/// The results of one method, out of those of all configurations of the plan.
CellBlock block_of(const replay::ReplayPlan& plan, std::size_t method, std::vector<replay::HeadResult>& heads) {
  const std::vector<replay::Configuration>& all = plan.configurations;  // ordered by method
  const auto first = std::ranges::lower_bound(all, method, {}, &replay::Configuration::method) - all.begin();
  const auto last = std::ranges::upper_bound(all, method, {}, &replay::Configuration::method) - all.begin();
  CellBlock block;
  for (replay::HeadResult& head : heads) {
    block.emplace_back(std::make_move_iterator(head.results.begin() + first),
                       std::make_move_iterator(head.results.begin() + last));
  }
  return block;
}

void replay_rest(const SweepStep& step, const StepRest& rest, CellsFile& file, const replay::ReplayHooks& hooks) {
  replay_work_items(*step.reader, rest.replay, step.request, step.options, hooks,
                    [&](std::size_t u, std::vector<replay::HeadResult> heads) {
                      const replay::WorkItem& item = rest.replay.work_items[u];
                      for (std::size_t i = 0; i < item.methods.size(); ++i) {
                        file.add(rest.cells[u][i]->key, block_of(rest.replay, item.methods[i], heads));
                      }
                    });
}

void measure_rest(const SweepStep& step, const StepLayout& layout, const StepRest& rest,
                  const std::vector<measures::Measure>& measures, CellsFile& file, const replay::ReplayHooks& hooks) {
  std::mutex adding;
  replay::RunOptions on_host = step.options;
  if (on_host.backend == "cuda") on_host.backend = "cpu";
  run_work_items(rest.measured.size(), on_host, hooks, [&](Backend& backend, std::size_t i, const replay::PartDone&) {
    const std::size_t h = rest.measured[i];
    std::vector<measures::MeasureRow> rows =
        measure_head(*step.reader, step.measured[h], measures, backend, hooks.stop);
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
    for (const std::size_t u : work[s].work_items) standing.cells += plan.steps[s].replay.work_items[u].methods.size();
    standing.cells += work[s].measured.size();
    standing.finished += rest.measured.size();
    for (const auto& cells : rest.cells) standing.finished += cells.size();
  }
  standing.finished = standing.cells - standing.finished;
  return standing;
}

void run_sweep(const SweepPlan& plan, const SweepLayout& layout, const Shard& shard, CellsFile& file,
               const replay::ReplayHooks& hooks) {
  const std::vector<StepWork> work = select_work(plan, shard);
  std::vector<StepRest> rests;
  Index before = 0, total = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    rests.push_back(rest_of(plan.steps[s], layout.steps[s], work[s], file));
    total += rests.back().items();
  }
  replay::ReplayHooks part{.note = hooks.note, .stop = hooks.stop};
  if (hooks.progress)
    part.progress = [&](double done, Index) { hooks.progress(static_cast<double>(before) + done, total); };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const SweepStep& step = plan.steps[s];
    const StepRest& rest = rests[s];
    const config::SweepRun& run = plan.sweep.runs[step.run];
    if (!rest.replay.work_items.empty())
      config::in_terms_of(run, where(run, step), [&] { replay_rest(step, rest, file, part); });
    before += static_cast<Index>(rest.replay.work_items.size());
    if (!rest.measured.empty()) {
      measure_rest(step, layout.steps[s], rest, run.measures, file, part);
    }
    before += static_cast<Index>(rest.measured.size());
  }
  file.sync();
}

}  // namespace kvbench::sweep
