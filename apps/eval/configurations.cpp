// SPDX-License-Identifier: Apache-2.0
#include <apps/eval/configurations.hpp>

#include <algorithm>
#include <utility>

#include <kvbench/config/sweep.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/replay/plan/fields.hpp>
#include <kvbench/sweep/expand.hpp>

namespace kvbench::kveval {
namespace {

/// Adds the budgets and seeds of one method behind those that `all` has of it.
void add_configurations(const replay::ReplayRequest& request, std::size_t method,
                        std::vector<loop::LoopConfiguration>& all) {
  const replay::MethodChoice& choice = request.methods[method];
  const auto of_method = [&, params = choice.params.text()](const loop::LoopConfiguration& other) {
    return other.method.info == choice.info && other.method.params.text() == params;
  };
  const std::vector<std::uint32_t> seeds = choice.depends_on_seed() ? request.seeds : std::vector<std::uint32_t>{0};
  for (std::size_t b = 0; b < request.budgets.size(); ++b) {
    if (std::ranges::find(request.excluded, std::pair(method, b)) != request.excluded.end()) continue;
    for (const std::uint32_t seed : seeds) {
      const auto begin = std::ranges::find_if(all, of_method);
      const auto end = std::find_if_not(begin, all.end(), of_method);
      const auto equal = [&](const loop::LoopConfiguration& other) {
        return other.budget == request.budgets[b] && other.seed == seed;
      };
      if (std::none_of(begin, end, equal)) all.insert(end, {choice, request.budgets[b], seed});
    }
  }
}

/// A replay of a sweep file and the name of its run.
struct NamedReplay {
  std::string run;
  replay::ReplayRequest request;
};

void require_same(const std::string& file, const NamedReplay& a, const NamedReplay& b) {
  for (const replay::RequestField& field : replay::request_fields()) {
    if (!field.use.of_evaluation || value_text(field, a.request) == value_text(field, b.request)) continue;
    const std::string runs = a.run == b.run ? fmt::format("the lists that 'zip' joins in run '{}'", a.run)
                                            : fmt::format("the runs '{}' and '{}'", a.run, b.run);
    throw Error("{}: {} differ in '{}', which holds for a whole evaluation; write a file for each", file, runs,
                field.key.name);
  }
}

/// The steps of a run that replay, whatever its devices.
std::vector<sweep::StepRequest> steps_of(config::SweepRun run) {
  std::ranges::fill(run.devices, "cpu");
  std::erase_if(run.exclusions, [](const config::Exclusion& exclusion) {
    return std::ranges::any_of(exclusion.where, [](const auto& item) { return item.first == "device"; });
  });
  if (run.traces.empty()) run.traces.emplace_back();  // a replay has a trace; it is not opened
  std::vector<sweep::StepRequest> steps = sweep::expand(run);
  std::erase_if(steps, [](const sweep::StepRequest& step) { return step.request.methods.empty(); });
  return steps;
}

/// Removes what has other budgets than these. Throws Error for a budget that no configuration has.
void keep_budgets(std::span<const std::string> texts, const std::string& file,
                  std::vector<loop::LoopConfiguration>& all) {
  std::vector<Budget> wanted, present;
  for (const loop::LoopConfiguration& configuration : all) {
    if (std::ranges::find(present, configuration.budget) == present.end()) present.push_back(configuration.budget);
  }
  for (const std::string& text : texts) {
    wanted.push_back(Budget::parse(text));
    if (std::ranges::find(present, wanted.back()) == present.end())
      throw Error("--budget {}: the runs of {} have {}", text, file, fmt::join(present, ", "));
  }
  std::erase_if(all, [&](const loop::LoopConfiguration& configuration) {
    return std::ranges::find(wanted, configuration.budget) == wanted.end();
  });
}

}  // namespace

std::vector<loop::LoopConfiguration> configurations_of(std::span<const replay::ReplayRequest> requests) {
  std::vector<loop::LoopConfiguration> all;
  for (const replay::ReplayRequest& request : requests) {
    for (std::size_t m = 0; m < request.methods.size(); ++m) add_configurations(request, m, all);
  }
  return all;
}

void use_sweep_file(Options& options, std::span<const std::string> budgets) {
  const config::Sweep sweep = config::read_sweep(options.sweep);
  std::vector<replay::ReplayRequest> requests;
  std::string first;
  for (const config::SweepRun& run : sweep.runs) {
    for (const sweep::StepRequest& step : steps_of(run)) {
      if (requests.empty()) first = run.name;
      requests.push_back(step.request);
      require_same(sweep.file, {first, requests.front()}, {run.name, step.request});
    }
  }
  if (requests.empty())
    throw Error("{}: has no run with methods; add some, such as methods = [\"snapkv\"]", sweep.file);
  options.configurations = configurations_of(requests);
  if (!budgets.empty()) keep_budgets(budgets, sweep.file, options.configurations);
  for (const replay::RequestField& field : replay::request_fields()) {
    if (field.use.of_evaluation) copy_value(field, requests.front(), options.request);
  }
  options.layers = std::exchange(options.request.layers, {});
}

}  // namespace kvbench::kveval
