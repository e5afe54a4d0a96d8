// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/estimate.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/run/head_memory.hpp>
#include <kvbench/sweep/pilot.hpp>

namespace kvbench::sweep {
namespace {

constexpr Index short_context = 1024, long_context = 2048;

/// The number of queries that are evaluated on a work item.
double queries_of(const SweepStep& step, const replay::WorkItem& item) {
  const auto& all = step.reader->info().prompts[item.prompt.prompt].layers[item.layer].query_positions;
  return static_cast<double>(all.end() - std::ranges::lower_bound(all, item.prompt.context));
}

class StepEstimate {
 public:
  StepEstimate(const SweepStep& step, Pilots& pilots, Estimate& total)
      : step_(step), total_(total), first_(pilots.run(step, short_context)), second_(pilots.run(step, long_context)) {
    for (std::size_t m = 0; m < step.request.methods.size(); ++m) {
      const std::string& name = step.request.methods[m].info->name;
      if (!second_.methods[m].ran && std::ranges::find(total.untimed, name) == total.untimed.end())
        total.untimed.push_back(name);
    }
  }

  /// Processor time of one work item; adds the size of its cells on disk to the total.
  double add(const replay::WorkItem& item) {
    const double context = static_cast<double>(item.prompt.base), queries = queries_of(step_, item);
    const double heads = static_cast<double>(item.kv_heads.size());
    double seconds = carried(first_.shared_seconds, second_.shared_seconds, 1, context, queries);
    for (const std::size_t m : item.methods) {
      const HeadCost &a = first_.methods[m], &b = second_.methods[m];
      const double seeds =
          step_.request.methods[m].depends_on_seed() ? static_cast<double>(step_.request.seeds.size()) : 1;
      seconds += seeds * carried(a.seconds, b.seconds, b.attending, context, queries);
      total_.cells_bytes += heads * seeds * b.cells_bytes * queries / static_cast<double>(second_.queries);
    }
    return heads * seconds;
  }

 private:
  /// Seconds at (context, queries), extrapolated from those of the two pilots.
  double carried(double at_short, double at_long, double attending, double context, double queries) const {
    const double ratio = static_cast<double>(second_.context) / static_cast<double>(first_.context);
    const double growth = ratio > 1 && at_short > 0 && at_long > 0
                              ? std::clamp(std::log(at_long / at_short) / std::log(ratio), 0.0, 2.5)
                              : 1;
    const double longer = std::pow(context / static_cast<double>(second_.context), growth);
    return at_long * longer * (1 - attending + attending * queries / static_cast<double>(second_.queries));
  }

  const SweepStep& step_;
  Estimate& total_;
  PilotCost first_, second_;
};

/// A step that computes on the processor.
struct TimedStep {
  const SweepStep* step;
  const std::vector<std::size_t>* items;  ///< indices into its work items
  int threads;
  double weight;
};

/// Adds what is known of a step without timing it.
void add_bounds(const SweepStep& step, const std::vector<std::size_t>& items, Estimate& total,
                std::vector<TimedStep>& steps) {
  if (step.options.backend == "cuda") {
    for (const std::size_t u : items) total.on_gpu += step.replay.work_items[u].methods.size();
    return;
  }
  const replay::ThreadPlan planned = plan_threads(step.reader->info(), step.replay, step.options);
  const int threads = std::min(planned.threads, static_cast<int>(items.size()));
  total.threads = std::max(total.threads, threads);
  double weight = 0;
  for (const std::size_t u : items) {
    weight += weight_of(step, step.replay.work_items[u]);
    total.memory_bytes = std::max(total.memory_bytes, work_item_bytes(step.reader->info(), step.replay.work_items[u]));
  }
  steps.push_back({&step, &items, threads, weight});
}

/// Adds the cost of the steps. They are timed in a fixed random order, so that those that are timed represent the
/// others.
void add_costs(std::vector<TimedStep> steps, double most_seconds, Estimate& total) {
  std::shuffle(steps.begin(), steps.end(), std::mt19937(1));
  const auto start = std::chrono::steady_clock::now();
  Pilots pilots;
  double timed = 0, all = 0;  // weights
  for (const TimedStep& one : steps) {
    all += one.weight;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (total.timed_steps > 0 && spent.count() > most_seconds) continue;
    timed += one.weight;
    ++total.timed_steps;
    StepEstimate cost(*one.step, pilots, total);
    double seconds = 0;
    for (const std::size_t u : *one.items) seconds += cost.add(one.step->replay.work_items[u]);
    total.core_seconds += seconds;
    total.seconds += seconds / one.threads;
  }
  total.steps = steps.size();
  if (timed == 0) return;
  for (const auto figure : {&Estimate::core_seconds, &Estimate::seconds, &Estimate::cells_bytes})
    total.*figure *= all / timed;
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(seconds, 1.0));
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86400);
}

std::string bytes_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", std::max(bytes / 1e6, 1.0)) : fmt::format("{:.1f} GB", bytes / 1e9);
}

}  // namespace

Estimate estimate(const SweepPlan& plan, const Shard& shard, double most_seconds) {
  Estimate total;
  std::vector<TimedStep> steps;
  const std::vector<StepWork> work = select_work(plan, shard);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const SweepStep& step = plan.steps[s];
    const config::SweepRun& run = plan.sweep.runs[step.run];
    if (!work[s].work_items.empty())
      config::in_terms_of(run, where(run, step), [&] { add_bounds(step, work[s].work_items, total, steps); });
  }
  add_costs(std::move(steps), most_seconds, total);
  total.memory_bytes *= total.threads;
  return total;
}

std::string describe(const Estimate& e) {
  std::string out;
  if (e.threads > 0) {
    out = fmt::format(
        "estimate: {} on {} thread{} ({} of processor time), up to {} of memory, {} for the cells; from the times of a "
        "short synthetic head, accurate to about a factor of two\n",
        duration_text(e.seconds), e.threads, e.threads == 1 ? "" : "s", duration_text(e.core_seconds),
        bytes_text(e.memory_bytes), bytes_text(e.cells_bytes));
  }
  if (e.timed_steps < e.steps) {
    out += fmt::format(
        "{} of {} runs were timed; the others are taken to cost as much in proportion to their tokens and "
        "configurations\n",
        e.timed_steps, e.steps);
  }
  if (!e.untimed.empty())
    out += fmt::format("not in the estimate, as they do not run on the short synthetic head: {}\n",
                       fmt::join(e.untimed, ", "));
  if (e.on_gpu > 0) out += fmt::format("not in the estimate: {} cells on a GPU\n", e.on_gpu);
  return out;
}

}  // namespace kvbench::sweep
