// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <kvbench/config/run_keys.hpp>
#include <kvbench/config/sweep.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::config {
namespace {

/// Numbers, true and false as they are, everything else in quotes.
std::string toml_value(const methods::ParamSpec& parameter) {
  const bool bare = parameter.type != "text" && parameter.type != "choice" && !parameter.default_value.empty() &&
                    (parameter.default_value == "true" || parameter.default_value == "false" ||
                     parameter.default_value.find_first_not_of("0123456789.-e") == std::string::npos);
  return bare ? parameter.default_value : fmt::format("\"{}\"", parameter.default_value);
}

std::string method_lines(const methods::MethodInfo& method) {
  std::string out = fmt::format("#   {}: {}\n", method.name, method.summary);
  std::vector<std::string> settings = {fmt::format("name = \"{}\"", method.name)};
  for (const methods::ParamSpec& parameter : method.params) {
    settings.push_back(fmt::format("{} = {}", parameter.name, toml_value(parameter)));
    out += fmt::format("#     {}: {}{}\n", parameter.name, parameter.doc,
                       parameter.range.empty() ? "" : fmt::format(" [{}]", parameter.range));
  }
  return out + fmt::format("#   {{ {} }},\n", fmt::join(settings, ", "));
}

}  // namespace

std::string example_sweep() {
  std::string out = R"(# A sweep file: kvbench sweep FILE.toml -o out.csv      (with --dry-run: prints the plan only)
name = "example"                  # default: the name of the file
description = "What the sweep shows"

[defaults]                        # for every run that does not set the key itself
traces = ["../traces/smollm2-135m.h5"]
budgets = ["12.5%", "25%"]
seeds = 3

[[run]]
name = "eviction"                 # default: 1, 2, ...
methods = ["exact", "sink", "snapkv"]

[[run]]
name = "sampling"
methods = ["uniform", { name = "subgen", t = [2, 4] }]
exclude = [{ method = "subgen", budget = "12.5%" }]

# A claim of a paper, which the sweep tests, and numbers of the paper, which the report shows beside the rows:
[[published]]
claim = "Selection by attention is better than keeping the first and last tokens"
paper = "no number in the text"
metric = "rel_err_mean"
relations = [{ run = "eviction", a = "snapkv", is = "lower", b = "sink", by = "layer" }]   # or: untestable = "why"
rows = [{ run = "eviction", method = "snapkv" }, { run = "eviction", method = "sink" }]
why = "another model, and the error of attention instead of the score of a task"

# All keys of a run and of [defaults]:
)";
  for (const RunKey& key : run_keys()) out += fmt::format("#   {} = {}   # {}\n", key.name, key.example, key.doc);
  out += "\n# All methods, with the default values of their parameters:\n";
  for (const methods::MethodInfo& method : methods::all_methods()) out += method_lines(method);
  return out;
}

}  // namespace kvbench::config
