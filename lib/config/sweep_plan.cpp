// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/sweep_plan.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace kvbench::config {
namespace {

/// Each trace is opened once, however many runs use it.
class Traces {
 public:
  std::shared_ptr<const trace::Reader> open(const TraceChoice& choice) {
    auto& reader = readers_[choice.path];
    if (!reader) reader = with_place(choice.place, [&] { return std::make_shared<const trace::Reader>(choice.path); });
    return reader;
  }

 private:
  std::map<std::string, std::shared_ptr<const trace::Reader>> readers_;
};

SweepStep plan_step(const SweepRun& run, std::size_t index, std::shared_ptr<const trace::Reader> reader) {
  SweepStep step{.run = index, .reader = std::move(reader)};
  try {
    if (!run.request.methods.empty()) step.replay = make_plan(step.reader->info(), run.request);
    if (!run.measures.empty()) step.measured_heads = select_heads(step.reader->info(), run.request).size();
  } catch (const Error& error) {
    fail_at(run.place, "run '{}' on {}: {}", run.name, step.reader->path(), error.what());
  }
  return step;
}

std::string list_text(const std::vector<std::int64_t>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

std::string layers_text(const SweepStep& step, const SweepRun& run) {
  std::set<std::int64_t> layers;
  for (const HeadPlace& head : select_heads(step.reader->info(), run.request)) {
    layers.insert(step.reader->info().prompts[head.prompt].layers[head.layer].layer);
  }
  return list_text({layers.begin(), layers.end()});
}

std::string method_text(const MethodChoice& choice, std::size_t seeds) {
  std::string out = choice.info->name;
  if (!choice.params.text().empty()) out += fmt::format("[{}]", choice.params.text());
  if (choice.info->seeded) out += fmt::format(" x {} seed{}", seeds, seeds == 1 ? "" : "s");
  return out;
}

/// Tokens that the budgets mean in the first prompt.
std::string budgets_text(const SweepStep& step, const ReplayRequest& request) {
  std::vector<std::string> items;
  for (const Budget& budget : request.budgets) {
    items.push_back(
        fmt::format("{} ({})", budget.text(), budget_tokens(step.replay.prompts.front(), budget, request.protect_outside)));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string replay_text(const SweepStep& step, const SweepRun& run) {
  const ReplayRequest& request = run.request;
  const PromptPlan& prompt = step.replay.prompts.front();
  std::vector<std::string> methods;
  for (const MethodChoice& choice : request.methods) methods.push_back(method_text(choice, request.seeds.size()));
  std::string out =
      fmt::format("  protocol {}, {} prompt{}, context {} of {} tokens", name_of(prompt.protocol), step.replay.prompts.size(),
                  step.replay.prompts.size() == 1 ? "" : "s", prompt.context, prompt.tokens);
  if (request.decoded == Decoded::keep) out += ", decoded tokens kept";
  if (prompt.protect_first + prompt.protect_last > 0) {
    out += fmt::format(", protects {} first and {} last {} the budget", prompt.protect_first, prompt.protect_last,
                       request.protect_outside ? "outside" : "inside");
  }
  if (request.dense_layers > 0) out += fmt::format(", {} dense layers", request.dense_layers);
  out += fmt::format("\n  methods  {}\n  budgets  {}\n", fmt::join(methods, ", "), budgets_text(step, request));
  return out + fmt::format("  cells    {} configurations x {} heads = {}\n", step.replay.cells.size(), step.replay.heads.size(),
                           step.replay.cells.size() * step.replay.heads.size());
}

std::string step_text(const SweepStep& step, const SweepRun& run) {
  std::string out = fmt::format("run {} on {}\n", run.name, std::filesystem::path(step.reader->path()).filename().string());
  out += fmt::format("  layers   {}\n", layers_text(step, run));
  if (!run.request.methods.empty()) out += replay_text(step, run);
  if (!run.measures.empty()) {
    std::vector<std::string_view> names;
    for (const Measure measure : run.measures) names.push_back(name_of(measure));
    out += fmt::format("  measures {} of {} kv heads\n", fmt::join(names, ", "), step.measured_heads);
  }
  return out;
}

}  // namespace

SweepPlan plan_sweep(Sweep sweep) {
  SweepPlan plan{.sweep = std::move(sweep), .steps = {}};
  Traces traces;
  for (std::size_t r = 0; r < plan.sweep.runs.size(); ++r) {
    const SweepRun& run = plan.sweep.runs[r];
    if (run.traces.empty()) {
      fail_at(run.place, "run '{}' has no traces; name some with the key 'traces', or with --trace", run.name);
    }
    for (const TraceChoice& trace : run.traces) plan.steps.push_back(plan_step(run, r, traces.open(trace)));
  }
  return plan;
}

bool has_replays(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const SweepRun& run) { return !run.request.methods.empty(); });
}

bool has_measures(const SweepPlan& plan) {
  return std::ranges::any_of(plan.sweep.runs, [](const SweepRun& run) { return !run.measures.empty(); });
}

std::string describe(const SweepPlan& plan) {
  std::string out = plan.sweep.name + "\n";
  if (!plan.sweep.description.empty()) out += plan.sweep.description + "\n";
  std::size_t cells = 0, heads = 0;
  for (const SweepStep& step : plan.steps) {
    out += "\n" + step_text(step, plan.sweep.runs[step.run]);
    cells += step.replay.cells.size() * step.replay.heads.size();
    heads += step.measured_heads;
  }
  out += fmt::format("\n{} runs, {} cells", plan.sweep.runs.size(), cells);
  if (heads > 0) out += fmt::format(", {} heads to measure", heads);
  return out + "\n";
}

}  // namespace kvbench::config
