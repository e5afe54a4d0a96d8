// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/replay/plan/selection.hpp>
#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {
namespace {

using namespace config;

std::string list_text(const std::vector<std::int64_t>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

std::string layers_text(const SweepStep& step) {
  std::set<std::int64_t> layers;
  for (const replay::HeadPlace& head : select_heads(step.reader->info(), step.request)) {
    layers.insert(step.reader->info().prompts[head.prompt].layers[head.layer].layer);
  }
  return list_text({layers.begin(), layers.end()});
}

std::string method_text(const replay::MethodChoice& choice, std::size_t seeds) {
  std::string out = compare::label_of({choice.info->name, choice.params.text(), {}});
  if (choice.depends_on_seed()) out += fmt::format(" x {} seed{}", seeds, seeds == 1 ? "" : "s");
  return out;
}

/// The budgets, with their tokens in the first prompt.
std::string budgets_text(const SweepStep& step, const replay::ReplayRequest& request) {
  std::vector<std::string> items;
  for (const Budget& budget : request.budgets) {
    const Index tokens = budget_tokens(step.replay.prompts.front(), budget, request.protect_outside);
    items.push_back(budget.cost() ? budget.text() : fmt::format("{} ({})", budget.text(), tokens));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string replay_text(const SweepStep& step) {
  const replay::ReplayRequest& request = step.request;
  const replay::PromptPlan& prompt = step.replay.prompts.front();
  std::vector<std::string> methods;
  for (const replay::MethodChoice& choice : request.methods)
    methods.push_back(method_text(choice, request.seeds.size()));
  std::string out = fmt::format("  protocol {}, {} prompt{}, context {} of {} tokens", name_of(prompt.protocol),
                                step.replay.prompts.size(), step.replay.prompts.size() == 1 ? "" : "s", prompt.context,
                                prompt.tokens);
  out += description(request);
  out += fmt::format("\n  methods  {}\n  budgets  {}\n", fmt::join(methods, ", "), budgets_text(step, request));
  return out + fmt::format("  results  {} configurations x {} kv heads = {}\n", step.replay.configurations.size(),
                           step.replay.heads.size(), step.replay.configurations.size() * step.replay.heads.size());
}

std::string step_text(const SweepStep& step, const SweepRun& run) {
  std::string out =
      fmt::format("run {} on {}{}\n", run.name, std::filesystem::path(step.reader->path()).filename().string(),
                  step.options.backend == "cpu" ? "" : fmt::format(", computed on {}", step.options.backend));
  out += fmt::format("  layers   {}\n", layers_text(step));
  if (!step.request.methods.empty()) out += replay_text(step);
  if (!run.measures.empty()) {
    std::vector<std::string_view> names;
    for (const measures::Measure measure : run.measures) names.push_back(name_of(measure));
    out += fmt::format("  measures {} of {} kv heads\n", fmt::join(names, ", "), step.measured.size());
  }
  return out;
}

}  // namespace

std::string describe(const SweepPlan& plan) {
  std::string out = plan.sweep.name + "\n";
  if (!plan.sweep.description.empty()) out += plan.sweep.description + "\n";
  std::size_t results = 0, heads = 0;
  for (const SweepStep& step : plan.steps) {
    out += "\n" + step_text(step, plan.sweep.runs[step.run]);
    results += step.replay.configurations.size() * step.replay.heads.size();
    heads += step.measured.size();
  }
  out += fmt::format("\n{} runs, {} results", plan.sweep.runs.size(), results);
  if (heads > 0) out += fmt::format(", {} kv heads to measure", heads);
  return out + "\n";
}

}  // namespace kvbench::sweep
