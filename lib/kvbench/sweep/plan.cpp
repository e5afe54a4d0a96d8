// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/plan.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/calibration.hpp>
#include <kvbench/replay/plan/selection.hpp>
#include <kvbench/sweep/expand.hpp>

namespace kvbench::sweep {
namespace {

using namespace config;

/// Opens each trace and each calibration text once, even if several runs use it.
class Traces {
 public:
  Traces() = default;
  /// Every trace is this one.
  explicit Traces(std::shared_ptr<const trace::Reader> only) : only_(std::move(only)) {}

  std::shared_ptr<const trace::Reader> open(const TraceChoice& choice) {
    if (only_) return only_;
    auto& reader = readers_[choice.path];
    if (!reader) reader = with_place(choice.place, [&] { return std::make_shared<const trace::Reader>(choice.path); });
    return reader;
  }

  const replay::Calibration& calibration(const std::string& text) {
    const auto known = calibrations_.find(text);
    return known != calibrations_.end() ? known->second
                                        : calibrations_.emplace(text, replay::open_calibration(text)).first->second;
  }

 private:
  std::shared_ptr<const trace::Reader> only_;
  std::map<std::string, replay::Calibration> calibrations_;
  std::map<std::string, std::shared_ptr<const trace::Reader>> readers_;
};

SweepStep plan_step(const SweepRun& run, std::size_t index, const StepRequest& wanted,
                    const replay::RunOptions& options, Traces& traces) {
  SweepStep step{.run = index, .reader = traces.open(wanted.trace), .request = wanted.request, .options = options};
  step.options.backend = wanted.backend;
  in_terms_of(run, where(run, step), [&] {
    if (!run.calibrate.empty()) step.request.calibration = traces.calibration(run.calibrate);
    if (!step.request.methods.empty()) {
      step.replay = make_plan(step.reader->info(), step.request);
      check_calibration(*step.reader, step.replay, step.request);
    }
    if (!run.measures.empty()) step.measured = select_heads(step.reader->info(), step.request);
  });
  return step;
}

/// Whether two files hold the same trace, under whatever names. Only files of equal size are read.
bool same_trace(const trace::Reader& a, const trace::Reader& b) {
  std::error_code none;
  return &a == &b || (std::filesystem::file_size(a.path(), none) == std::filesystem::file_size(b.path(), none) &&
                      a.sha256() == b.sha256());
}

/// The heads that a step replays, with the protocol of each.
std::set<std::tuple<replay::HeadPlace, replay::Protocol>> replayed_heads(const SweepStep& step) {
  std::set<std::tuple<replay::HeadPlace, replay::Protocol>> heads;
  for (const replay::WorkItem& item : step.replay.work_items) {
    for (std::size_t h = 0; h < item.kv_heads.size(); ++h) heads.emplace(item.place(h), item.prompt.protocol);
  }
  return heads;
}

std::set<std::tuple<std::string, std::string, std::string>> configurations_of(const SweepStep& step) {
  std::set<std::tuple<std::string, std::string, std::string>> out;
  for (const replay::Configuration& c : step.replay.configurations) {
    const replay::MethodChoice& method = step.request.methods[c.method];
    out.emplace(method.info->name, method.params.text(), step.request.budgets[c.budget].text());
  }
  return out;
}

template <class T>
bool intersect(const std::set<T>& a, const std::set<T>& b) {
  return std::ranges::any_of(a, [&](const T& item) { return b.contains(item); });
}

/// Throws Error where steps of a run would write the same rows: results that count twice narrow intervals over traces,
/// and equal rows make a table that cannot be read. `zip` may name a trace several times, for other budgets, layers or
/// prompts.
void refuse_repeats(const SweepRun& run, const std::vector<StepRequest>& requests, std::span<const SweepStep> steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto heads = replayed_heads(steps[i]);
    const auto configurations = configurations_of(steps[i]);
    for (std::size_t j = 0; j < i; ++j) {
      const bool repeats =
          steps[i].options.backend == steps[j].options.backend && same_trace(*steps[i].reader, *steps[j].reader) &&
          intersect(heads, replayed_heads(steps[j])) && intersect(configurations, configurations_of(steps[j]));
      if (!repeats) continue;
      const TraceChoice &trace = requests[i].trace, &other = requests[j].trace;
      if (trace.path != other.path || std::ranges::count(run.traces, trace.path, &TraceChoice::path) > 1)
        fail_at(trace.place, "run '{}': {} and {} are the same trace; name it once", run.name, other.path, trace.path);
      const replay::Protocol protocol = requests[i].request.protocol;
      const bool by_protocol =
          protocol != requests[j].request.protocol || std::ranges::count(run.protocols, protocol) > 1;
      in_terms_of(run, where(run, steps[i]), [&] {
        throw Error("{} names the same {} twice; name it once", by_protocol ? "`protocol`" : "`backend`",
                    by_protocol ? "protocol" : "device");
      });
    }
  }
}

SweepPlan plan_with(Traces traces, config::Sweep sweep, const replay::RunOptions& options) {
  SweepPlan plan{.sweep = std::move(sweep)};
  for (std::size_t r = 0; r < plan.sweep.runs.size(); ++r) {
    const config::SweepRun& run = plan.sweep.runs[r];
    if (run.traces.empty()) {
      config::fail_at(
          run.place,
          "run '{}' has no traces; name some with the key 'traces', or give all runs the same ones with `traces`",
          run.name);
    }
    const std::vector<StepRequest> requests = expand(run, options.backend);
    const std::size_t first = plan.steps.size();
    for (const StepRequest& wanted : requests) {
      SweepStep step = plan_step(run, r, wanted, options, traces);
      // Measures depend on the trace alone: of several steps over the same heads only the first one measures.
      const auto measured_too = [&](const SweepStep& other) {
        return other.run == r && other.reader == step.reader && other.measured == step.measured;
      };
      if (std::ranges::any_of(plan.steps, measured_too)) step.measured.clear();
      plan.steps.push_back(std::move(step));
    }
    refuse_repeats(run, requests, std::span(plan.steps).subspan(first));
  }
  return plan;
}

}  // namespace

std::string where(const config::SweepRun& run, const SweepStep& step) {
  return fmt::format("run '{}' on {}", run.name, step.reader->path());
}

SweepPlan plan_sweep(config::Sweep sweep, const replay::RunOptions& options) {
  return plan_with(Traces(), std::move(sweep), options);
}

SweepPlan plan_sweep(config::Sweep sweep, const replay::RunOptions& options,
                     std::shared_ptr<const trace::Reader> trace) {
  use_traces(sweep, {trace->path()}, trace->path());
  return plan_with(Traces(std::move(trace)), std::move(sweep), options);
}

bool has_replays(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const config::SweepRun& run) { return !run.request.methods.empty(); });
}

bool has_measures(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const config::SweepRun& run) { return !run.measures.empty(); });
}

namespace {

/// Divides the list in order: an item belongs to the shard that contains its midpoint.
class Cutter {
 public:
  Cutter(double total, const Shard& shard) : total_(total), shard_(shard) {}
  bool mine(double weight) {
    const double middle = (before_ + weight / 2) / total_;
    before_ += weight;
    const auto part = static_cast<std::size_t>(middle * static_cast<double>(shard_.count));
    return std::min(part, shard_.count - 1) + 1 == shard_.index;
  }

 private:
  double total_, before_ = 0;
  const Shard& shard_;
};

double weight_of(const SweepStep& step, const replay::HeadPlace& head) {
  return static_cast<double>(step.reader->info().prompts[head.prompt].num_tokens);
}

}  // namespace

Shard Shard::parse(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.index);
  const bool good = first == std::errc() && slash != end && *slash == '/';
  const auto [rest, second] = good ? std::from_chars(slash + 1, end, shard.count) : std::from_chars_result{};
  if (!good || second != std::errc() || rest != end || shard.index < 1 || shard.index > shard.count) {
    throw Error("`shard` is '{}'; write the part and the number of parts, such as 1/8 to 8/8", text);
  }
  return shard;
}

double weight_of(const SweepStep& step, const replay::WorkItem& item) {
  const auto configurations = std::ranges::count_if(
      step.replay.configurations, [&](const replay::Configuration& c) { return item.runs(c.method); });
  return static_cast<double>(item.prompt.tokens) * static_cast<double>(item.kv_heads.size()) *
         static_cast<double>(configurations + 1);
}

std::vector<StepWork> select_work(const SweepPlan& plan, const Shard& shard) {
  double total = 0;
  for (const SweepStep& step : plan.steps) {
    for (const replay::WorkItem& item : step.replay.work_items) total += weight_of(step, item);
    for (const replay::HeadPlace& head : step.measured) total += weight_of(step, head);
  }
  Cutter cutter(total, shard);
  std::vector<StepWork> work;
  for (const SweepStep& step : plan.steps) {
    StepWork& mine = work.emplace_back();
    for (std::size_t u = 0; u < step.replay.work_items.size(); ++u) {
      if (cutter.mine(weight_of(step, step.replay.work_items[u]))) mine.work_items.push_back(u);
    }
    for (std::size_t h = 0; h < step.measured.size(); ++h) {
      if (cutter.mine(weight_of(step, step.measured[h]))) mine.measured.push_back(h);
    }
  }
  return work;
}

}  // namespace kvbench::sweep
