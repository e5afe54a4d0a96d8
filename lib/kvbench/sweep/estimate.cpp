// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/estimate.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <random>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/head_memory.hpp>
#include <kvbench/sweep/cells_file.hpp>

namespace kvbench::sweep {
namespace {

/// A work item that was replayed with one seed; its cost is that of all seeds.
struct TimedItem {
  double weight = 0, seconds = 0, cells_bytes = 0;
};

/// Whether methods run on a work item: its layer is neither dense nor one with a sliding window.
bool compressed(const SweepStep& step, const replay::WorkItem& item) {
  const std::int64_t layer = step.reader->info().prompts[item.prompt.prompt].layers[item.layer].layer;
  return !replay::keeps_whole(step.request, layer) &&
         std::ranges::find(item.prompt.layers, layer) != item.prompt.layers.end();
}

/// Replays the work item on one thread, and names the methods of which no configuration ran.
TimedItem time_item(const SweepStep& step, const replay::WorkItem& item, const std::atomic<bool>* stop,
                    Estimate& total) {
  const std::vector<std::uint32_t>& seeds = step.request.seeds;
  const auto seeded = [&](const replay::Configuration& c) { return step.request.methods[c.method].depends_on_seed(); };
  replay::ReplayPlan plan = step.replay;
  plan.work_items = {item};
  std::erase_if(plan.configurations,
                [&](const replay::Configuration& c) { return seeded(c) && c.seed != seeds.front(); });
  replay::RunOptions options = step.options;
  options.threads = 1;
  TimedItem timed{.weight = weight_of(step, item)};
  std::set<std::size_t> ran;
  const std::clock_t start = std::clock();
  const auto take = [&](std::size_t, std::vector<replay::HeadResult> heads) {
    timed.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    for (replay::HeadResult& head : heads) {
      for (std::size_t c = 0; c < plan.configurations.size(); ++c) {
        const replay::Configuration& configuration = plan.configurations[c];
        replay::ConfigurationResult& result = head.results[c];
        if (!item.runs(configuration.method)) continue;
        if (result.status == replay::Status::ok) ran.insert(configuration.method);
        const double copies = seeded(configuration) ? static_cast<double>(seeds.size()) : 1;
        timed.seconds += (copies - 1) * (result.compress_s + result.attend_s);
        timed.cells_bytes += copies * static_cast<double>(encode_cells({{std::move(result)}}).size());
      }
    }
  };
  replay_work_items(*step.reader, plan, step.request, options, {.stop = stop}, take);
  for (const std::size_t m : item.methods) {
    const std::string& name = step.request.methods[m].info->name;
    if (!ran.contains(m) && std::ranges::find(total.untimed, name) == total.untimed.end())
      total.untimed.push_back(name);
  }
  return timed;
}

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

/// Adds the cost of a step: its first work item with the same methods stands for the others, in proportion to tokens.
void add_cost(const TimedStep& one, const std::atomic<bool>* stop, Estimate& total) {
  const SweepStep& step = *one.step;
  std::map<std::vector<std::size_t>, TimedItem> first;  // by methods
  for (const std::size_t u : *one.items) {
    const replay::WorkItem& item = step.replay.work_items[u];
    const auto [timed, fresh] = first.try_emplace(item.methods);
    if (fresh) {
      const auto like = std::ranges::find_if(*one.items, [&](std::size_t other) {
        const replay::WorkItem& candidate = step.replay.work_items[other];
        return candidate.methods == item.methods && compressed(step, candidate);
      });
      timed->second = time_item(step, step.replay.work_items[like == one.items->end() ? u : *like], stop, total);
    }
    const double share = weight_of(step, item) / timed->second.weight;
    total.core_seconds += share * timed->second.seconds;
    total.seconds += share * timed->second.seconds / one.threads;
    total.cells_bytes += share * timed->second.cells_bytes;
  }
}

/// Adds the cost of the steps. They are timed in a fixed random order, so that those that are timed represent the
/// others.
void add_costs(std::vector<TimedStep> steps, double most_seconds, const std::atomic<bool>* stop, Estimate& total) {
  std::shuffle(steps.begin(), steps.end(), std::mt19937(1));
  const auto start = std::chrono::steady_clock::now();
  double timed = 0, all = 0;  // weights
  for (const TimedStep& one : steps) {
    all += one.weight;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (total.timed_steps > 0 && spent.count() > most_seconds) continue;
    timed += one.weight;
    ++total.timed_steps;
    add_cost(one, stop, total);
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

Estimate estimate(const SweepPlan& plan, const Shard& shard, double most_seconds, const std::atomic<bool>* stop) {
  Estimate total;
  std::vector<TimedStep> steps;
  const std::vector<StepWork> work = select_work(plan, shard);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const SweepStep& step = plan.steps[s];
    const config::SweepRun& run = plan.sweep.runs[step.run];
    if (!work[s].work_items.empty())
      config::in_terms_of(run, where(run, step), [&] { add_bounds(step, work[s].work_items, total, steps); });
  }
  add_costs(std::move(steps), most_seconds, stop, total);
  total.memory_bytes *= total.threads;
  return total;
}

std::string describe(const Estimate& e) {
  std::string out;
  if (e.threads > 0) {
    out = fmt::format(
        "estimate: {} on {} thread{} ({} of processor time), up to {} of memory, {} for the cells; from the times of "
        "the first heads, accurate to about a factor of two\n",
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
    out += fmt::format("not in the estimate, as they do not run on the first heads: {}\n", fmt::join(e.untimed, ", "));
  if (e.on_gpu > 0) out += fmt::format("not in the estimate: {} cells on a GPU\n", e.on_gpu);
  return out;
}

}  // namespace kvbench::sweep
