// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/estimate.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/run/head_memory.hpp>
#include <kvbench/sweep/pilot.hpp>

namespace kvbench::sweep {
namespace {

constexpr Index short_context = 1024, long_context = 2048;

/// Seconds at (context, queries), extrapolated from two pilots.
double carried(double at_short, double at_long, double attending, const PilotCost& first, const PilotCost& second,
               double context, double queries) {
  const double ratio = static_cast<double>(second.context) / static_cast<double>(first.context);
  const double growth =
      ratio > 1 && at_short > 0 && at_long > 0 ? std::clamp(std::log(at_long / at_short) / std::log(ratio), 0.0, 2.5) : 1;
  const double longer = std::pow(context / static_cast<double>(second.context), growth);
  return at_long * longer * (1 - attending + attending * queries / static_cast<double>(second.queries));
}

/// The number of queries that are evaluated on a work item.
double queries_of(const SweepStep& step, const WorkItem& item) {
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
  double add(const WorkItem& item) {
    const double context = static_cast<double>(item.prompt.base), queries = queries_of(step_, item);
    const double heads = static_cast<double>(item.kv_heads.size());
    double seconds = carried(first_.shared_seconds, second_.shared_seconds, 1, first_, second_, context, queries);
    for (const std::size_t m : item.methods) {
      const HeadCost &a = first_.methods[m], &b = second_.methods[m];
      const double seeds = step_.request.methods[m].depends_on_seed() ? static_cast<double>(step_.request.seeds.size()) : 1;
      seconds += seeds * carried(a.seconds, b.seconds, b.attending, first_, second_, context, queries);
      total_.cells_bytes += heads * seeds * b.cells_bytes * queries / static_cast<double>(second_.queries);
    }
    return heads * seconds;
  }

 private:
  const SweepStep& step_;
  Estimate& total_;
  PilotCost first_, second_;
};

/// All steps in a fixed random order, so that those that are timed represent the others.
std::vector<std::size_t> order_of_timing(std::size_t steps) {
  std::vector<std::size_t> order(steps);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  return order;
}

class Estimator {
 public:
  explicit Estimator(double most_seconds)
      : end_(std::chrono::steady_clock::now() + std::chrono::duration<double>(most_seconds)) {}

  /// `items`: indices into the work items of the step.
  void add(const SweepStep& step, const std::vector<std::size_t>& items) {
    if (step.options.backend == "cuda") {
      for (const std::size_t u : items) total_.on_gpu += step.replay.work_items[u].methods.size();
      return;
    }
    const ThreadPlan planned = plan_threads(step.reader->info(), step.replay, step.options);
    const int threads = std::min(planned.threads, static_cast<int>(items.size()));
    total_.threads = std::max(total_.threads, threads);
    double weight = 0;
    for (const std::size_t u : items) {
      weight += weight_of(step, step.replay.work_items[u]);
      total_.memory_bytes = std::max(total_.memory_bytes, work_item_bytes(step.reader->info(), step.replay.work_items[u]));
    }
    weight_ += weight;
    ++total_.steps;
    if (total_.timed_steps > 0 && std::chrono::steady_clock::now() > end_) return;
    timed_weight_ += weight;
    ++total_.timed_steps;
    time(step, items, threads);
  }

  Estimate total() const {
    Estimate total = total_;
    if (total.timed_steps == 0) return total;
    for (const auto figure : {&Estimate::core_seconds, &Estimate::seconds, &Estimate::cells_bytes})
      total.*figure *= weight_ / timed_weight_;
    total.memory_bytes *= total.threads;
    return total;
  }

 private:
  void time(const SweepStep& step, const std::vector<std::size_t>& items, int threads) {
    StepEstimate estimate(step, pilots_, total_);
    double seconds = 0;
    for (const std::size_t u : items) seconds += estimate.add(step.replay.work_items[u]);
    total_.core_seconds += seconds;
    total_.seconds += seconds / threads;
  }

  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_;
  Pilots pilots_;
  Estimate total_;
  double weight_ = 0, timed_weight_ = 0;  ///< of all steps, and of those that were timed
};

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
  Estimator estimator(most_seconds);
  const std::vector<StepWork> work = select_work(plan, shard);
  for (const std::size_t s : order_of_timing(plan.steps.size())) {
    const SweepStep& step = plan.steps[s];
    const config::SweepRun& run = plan.sweep.runs[step.run];
    if (!work[s].work_items.empty())
      config::in_terms_of(run, where(run, step), [&] { estimator.add(step, work[s].work_items); });
  }
  return estimator.total();
}

std::string describe(const Estimate& e) {
  std::string out;
  if (e.threads > 0) {
    out = fmt::format(
        "estimate: {} on {} thread{} ({} of processor time), up to {} of memory, {} for the cells; from the times of a short "
        "synthetic head, accurate to about a factor of two\n",
        duration_text(e.seconds), e.threads, e.threads == 1 ? "" : "s", duration_text(e.core_seconds),
        bytes_text(e.memory_bytes), bytes_text(e.cells_bytes));
  }
  if (e.timed_steps < e.steps) {
    out += fmt::format(
        "{} of {} runs were timed; the others are taken to cost as much in proportion to their tokens and configurations\n",
        e.timed_steps, e.steps);
  }
  if (!e.untimed.empty())
    out += fmt::format("not in the estimate, as they do not run on the short synthetic head: {}\n", fmt::join(e.untimed, ", "));
  if (e.on_gpu > 0) out += fmt::format("not in the estimate: {} cells on a GPU\n", e.on_gpu);
  return out;
}

}  // namespace kvbench::sweep
