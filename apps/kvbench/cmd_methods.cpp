// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/config/method_flags.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/core/utf8.hpp>
#include <kvbench/methods/engines.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/testing/contract.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/method_text.hpp>

namespace kvbench::app {
namespace {

struct MethodsFlags {
  std::vector<std::string> names;
  std::string format = "text", engine;
  bool check = false;
};

using Choices = std::vector<replay::MethodChoice>;

Choices all_choices() {
  Choices all;
  for (const methods::MethodInfo& m : methods::all_methods()) all.push_back({&m, m.bind({})});
  return all;
}

/// The parameters of a method as a list in JSON, on one line.
std::string parameter_list(const methods::MethodInfo& method) {
  using methods::ParamSpec;
  const auto column = [](const char* key, auto of) {
    return report::Column<ParamSpec>{key, "", report::value_of<ParamSpec>(of)};
  };
  const std::vector<report::Column<ParamSpec>> columns = {
      column("name", &ParamSpec::name), column("default", &ParamSpec::default_value), column("type", &ParamSpec::type),
      column("range", &ParamSpec::range), column("meaning", &ParamSpec::doc)};
  std::string list = report::table_of("json", std::span<const report::Column<ParamSpec>>(columns),
                                      std::span<const ParamSpec>(method.params));
  std::erase(list, '\n');
  return list;
}

/// For programs: what there is, with which parameters, and the growth of cost that bench/scaling.py compares its
/// measurements with. `alone`: the smallest part of a model that the method compresses under a budget of its own.
std::string list_table(const std::string& format, const Choices& choices) {
  using replay::MethodChoice;
  const auto column = [](const char* key, auto of) {
    return report::Column<MethodChoice>{key, "", report::value_where<MethodChoice>(report::always, of)};
  };
  report::Column<MethodChoice> parameters =
      column("parameters", [](const MethodChoice& m) { return parameter_list(*m.info); });
  parameters.value.json = true;
  const std::vector<report::Column<MethodChoice>> columns = {
      column("method",
             [](const MethodChoice& m) {
               return compare::label_of({m.info->name, m.params.text(), {}});
             }),
      column("kind", [](const MethodChoice& m) { return std::string(name_of(m.info->kind)); }),
      column("compress", [](const MethodChoice& m) { return m.info->complexity.compress.text; }),
      column("query", [](const MethodChoice& m) { return m.info->complexity.query.text; }),
      column("memory", [](const MethodChoice& m) { return m.info->complexity.memory.text; }),
      column("compress_n", [](const MethodChoice& m) { return m.info->complexity.compress.growth; }),
      column("query_n", [](const MethodChoice& m) { return m.info->complexity.query.growth; }),
      column("memory_n", [](const MethodChoice& m) { return m.info->complexity.memory.growth; }),
      column("summary", [](const MethodChoice& m) { return m.info->summary; }),
      column("source", [](const MethodChoice& m) { return m.info->paper; }),
      column("runs_in", [](const MethodChoice& m) { return methods::runs_in(m.info->name, m.params.text()); }),
      column("alone",
             [](const MethodChoice& m) {
               const bool divides = plan_of(m) != nullptr || m.info->divides(m.params);
               return std::string(divides ? "model" : m.info->heads_alone(m.params) ? "head" : "layer");
             }),
      parameters};
  return report::table_of(format, std::span<const report::Column<MethodChoice>>(columns),
                          std::span<const MethodChoice>(choices));
}

std::string list(const std::string& format) {
  return format == "md" ? method_table() : format == "text" ? list_text() : list_table(format, all_choices());
}

/// The methods that an item of a list names, or the wrapper.
Choices described(const std::string& name) {
  for (const methods::Wrapper& wrapper : methods::all_wrappers()) {
    if (same_name(wrapper.info.name, name)) return {{&wrapper.info, wrapper.info.bind({})}};
  }
  return config::parse_methods({name}, {});
}

/// What is printed of these names: methods, or one family of them.
std::string answer(const MethodsFlags& o) {
  if (o.names.empty()) return list(o.format);
  const std::optional<methods::Kind> family = methods::find_family(o.names.front());
  const bool table = o.format == "csv" || o.format == "json";
  if (o.format == "md") throw Error("--format md: it has the table of all methods; leave the names out");
  if (family && o.names.size() == 1 && !table) return list_text(family);
  Choices choices;
  std::vector<const methods::MethodInfo*> methods;
  for (const std::string& name : o.names) {
    for (const replay::MethodChoice& choice : described(name)) {
      const auto is = [&](const replay::MethodChoice& known) { return same(known, choice); };
      if (std::ranges::none_of(choices, is)) choices.push_back(choice);
      if (std::ranges::find(methods, choice.info) == methods.end()) methods.push_back(choice.info);
    }
  }
  if (table) return list_table(o.format, choices);
  std::string out;
  for (const methods::MethodInfo* method : methods) out += (out.empty() ? "" : "\n") + details(*method);
  return out;
}

/// Runs the property tests on these methods, one line each, and returns the exit code.
int check_contract(const std::vector<std::string>& names) {
  const auto backend = make_cpu_backend(best_isa());
  int code = done;
  for (const replay::MethodChoice& choice : config::parse_methods(names, {})) {
    if (!choice.info->trace_sha256.empty())
      throw Error("--check: {} belongs to a trace, and methods are tested on random heads", choice.info->name);
    const testing::Row row{choice.info, choice.params};
    const std::string settings = row.params.text();
    print(fmt::format("{}{}{}\n", row.info->name, settings.empty() ? "" : " ", settings));
    const std::vector<testing::Finding> findings = testing::test_contract(row, *backend);
    if (findings.size() == 1) code = rows_failed;  // it does not run
    for (const testing::Finding& finding : findings) {
      print("  " + printable(describe(finding)) + "\n");
      if (finding.compliance == testing::Compliance::broken) code = rows_failed;
    }
  }
  return code;
}

}  // namespace

Command add_methods(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("methods", "List all methods, or describe one");
  auto options = std::make_shared<MethodsFlags>();
  CLI::Option* name =
      flags->add_option("name", options->names, "Methods to describe, or a family such as eviction to list");
  flags->add_option("--runs-in", options->engine, "Describe what this engine has, as a plan for it may have it")
      ->excludes(name);
  flags
      ->add_option(
          "--format", options->format,
          "text, md (the table of docs/methods.md), or csv or json (all methods, or those named, with summary, source, "
          "engines, parameters and cost)")
      ->check(one_of({"text", "md", "csv", "json"}));
  flags
      ->add_flag(
          "--check", options->check,
          "Test whether the method holds the contract of methods, a line per property; also NAME[PARAMETER=VALUE], "
          "FILE.py:NAME and all. Exit code 1 where it breaks one")
      ->needs(name);
  return {flags, [options] {
            if (!options->engine.empty())
              options->names = {std::string(methods::engine_of_flag("--runs-in", options->engine).name())};
            if (options->check) return check_contract(options->names);
            print(printable(answer(*options), "\n"));
            return static_cast<int>(done);
          }};
}

}  // namespace kvbench::app
