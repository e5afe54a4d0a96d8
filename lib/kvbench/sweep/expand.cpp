// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/expand.hpp>

#include <algorithm>
#include <filesystem>

#include <kvbench/config/named_files.hpp>
#include <kvbench/config/run_keys.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/replay/run/devices.hpp>

namespace kvbench::sweep {
namespace {

using config::Exclusion;
using config::SweepRun;

bool zipped(const SweepRun& run, const char* key) { return std::ranges::find(run.zip, key) != run.zip.end(); }

/// Item i alone of a list that `zip` names; any other list unchanged.
template <class T>
std::vector<T> items(const SweepRun& run, const char* key, const std::vector<T>& list, std::size_t i) {
  return zipped(run, key) ? std::vector<T>{list[i]} : list;
}

std::vector<StepRequest> combinations(const SweepRun& run, const std::string& backend) {
  std::vector<StepRequest> steps;
  const std::size_t pairs = run.zip.empty() ? 1 : config::list_size(run, run.zip.front());
  for (std::size_t i = 0; i < pairs; ++i) {
    StepRequest step{.request = run.request, .backend = {}};
    step.request.budgets = items(run, "budgets", run.request.budgets, i);
    step.request.layers = items(run, "layers", run.request.layers, i);
    step.request.prompts = items(run, "prompts", run.request.prompts, i);
    const std::vector<std::string> devices = run.devices.empty() ? std::vector{backend} : run.devices;
    for (const config::TraceChoice& trace : items(run, "traces", run.traces, i)) {
      for (const replay::Protocol protocol : items(run, "protocol", run.protocols, i)) {
        for (const std::string& device : items(run, "device", devices, i)) {
          step.trace = trace;
          step.request.protocol = protocol;
          step.backend = device;
          steps.push_back(step);
        }
      }
    }
  }
  return steps;
}

/// Whether giving this parameter changes nothing: it has this value, or its default one. The text of parameters cannot
/// tell, which omits those with their default value and holds the digests of files.
bool has_parameter(const replay::MethodChoice& method, const methods::Assignment& given) {
  method.info->bind({&given, 1});  // refuses values that no configuration can have
  std::vector<methods::Assignment> settings = methods::parse_settings(method.params.text());
  std::erase_if(settings, [&](const methods::Assignment& one) { return one.name == given.name; });
  settings.push_back(given);
  try {
    return method.info->bind(settings).text() == method.params.text();
  } catch (const Error&) {  // not beside the others
    return false;
  }
}

/// Whether `key` has this value in a configuration of a step.
bool has(const StepRequest& step, const replay::MethodChoice& method, const Budget& budget, const std::string& key,
         const std::string& value, const config::Place& place) {
  if (key == "method") return &methods::find_method(value) == method.info;
  if (key == "budget") {
    const std::optional<Budget> named = Budget::find(value);
    return named && budget.text() == named->text();
  }
  if (key == "protocol") return name_of(step.request.protocol) == value;
  if (key == "device") return step.backend == value;
  if (key == "trace") {
    const std::filesystem::path path(step.trace.path);
    return path.filename() == value || path.stem() == value;
  }
  if (std::ranges::find(method.info->params, key, &methods::ParamSpec::name) == method.info->params.end()) return false;
  return has_parameter(method, config::setting_of(place, *method.info, {key, value}));
}

/// Throws Error for keys and methods that this run does not have.
void check(const SweepRun& run, const Exclusion& exclusion) {
  std::vector<std::string> known = {"method", "budget", "trace", "protocol", "device"};
  for (const replay::MethodChoice& method : run.request.methods) {
    for (const methods::ParamSpec& parameter : method.info->params) known.push_back(parameter.name);
  }
  for (const auto& [key, value] : exclusion.where) {
    if (std::ranges::find(known, key) == known.end()) {
      config::fail_at(exclusion.place,
                      "'exclude' names '{}'; it takes method, budget, trace, protocol, device, or a parameter of a "
                      "method of this run.{}",
                      key, did_you_mean(key, known));
    }
    if (key == "method") config::with_place(exclusion.place, [&name = value] { methods::find_method(name); });
  }
}

/// Excludes the configurations that match all of an exclusion; returns whether there are any.
bool exclude(StepRequest& step, const Exclusion& exclusion) {
  bool any = false;
  for (std::size_t m = 0; m < step.request.methods.size(); ++m) {
    for (std::size_t b = 0; b < step.request.budgets.size(); ++b) {
      const auto holds = [&](const auto& item) {
        return has(step, step.request.methods[m], step.request.budgets[b], item.first, item.second, exclusion.place);
      };
      if (!std::ranges::all_of(exclusion.where, holds)) continue;
      any = true;
      const std::pair place(m, b);
      if (std::ranges::find(step.request.excluded, place) == step.request.excluded.end())
        step.request.excluded.push_back(place);
    }
  }
  return any;
}

/// Removes the methods of which every budget is excluded.
void drop_empty_methods(replay::ReplayRequest& request) {
  for (std::size_t m = request.methods.size(); m-- > 0;) {
    const auto of_method = [&](const auto& place) { return place.first == m; };
    if (static_cast<std::size_t>(std::ranges::count_if(request.excluded, of_method)) < request.budgets.size()) continue;
    request.methods.erase(request.methods.begin() + static_cast<std::ptrdiff_t>(m));
    std::erase_if(request.excluded, of_method);
    for (auto& place : request.excluded) place.first -= place.first > m ? 1 : 0;
  }
}

}  // namespace

std::vector<StepRequest> expand(const SweepRun& run, const std::string& backend) {
  std::vector<StepRequest> steps = combinations(run, backend);
  for (const Exclusion& exclusion : run.exclusions) {
    check(run, exclusion);
    bool any = false;
    for (StepRequest& step : steps) any = exclude(step, exclusion) || any;
    if (!any) config::fail_at(exclusion.place, "no configuration of run '{}' matches this exclusion", run.name);
  }
  for (StepRequest& step : steps) {
    drop_empty_methods(step.request);
    config::in_terms_of(run, fmt::format("run '{}'", run.name),
                        [&] { step.backend = replay::choose_device(step.backend).backend; });
  }
  if (run.measures.empty()) std::erase_if(steps, [](const StepRequest& step) { return step.request.methods.empty(); });
  if (steps.empty()) config::fail_at(run.place, "'exclude' removes every configuration of run '{}'", run.name);
  return steps;
}

}  // namespace kvbench::sweep
