// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/method_text.hpp>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/sets.hpp>

#include <apps/common/rows/column_page.hpp>

namespace kvbench::app {
namespace {

const char* granularity_name(methods::Granularity granularity) {
  constexpr const char* names[] = {"kv head", "query head", "layer", "model"};
  return names[static_cast<int>(granularity)];
}

/// "snapkv[per=query_head]" ... of the variants of these methods, which have rows of their own in --method all.
std::vector<std::string> variant_names(std::span<const methods::MethodInfo> methods) {
  std::vector<std::string> names;
  for (const methods::MethodInfo& m : methods) {
    for (const auto& settings : m.variants) names.push_back(compare::label_of({m.name, m.bind(settings).text(), {}}));
  }
  return names;
}

/// What --method all replays beside every method with its defaults: variants and compositions.
std::vector<std::string> also_replayed() {
  std::vector<std::string> names = variant_names(methods::all_methods());
  for (const auto& [info, settings] : methods::rows_of_set("all")) {
    const auto same = [one = info](const methods::MethodInfo& method) { return one == &method; };
    if (std::ranges::none_of(methods::all_methods(), same)) names.push_back(info->name);
  }
  return names;
}

/// The methods that --method all does not replay.
std::vector<std::string> left_out() {
  std::vector<std::string> names;
  for (const methods::MethodInfo& method : methods::all_methods()) {
    const auto same = [&](const methods::MethodSettings& row) { return row.info == &method; };
    if (std::ranges::none_of(methods::rows_of_set("all"), same)) names.push_back(method.name);
  }
  return names;
}

/// What the method needs of a trace beside keys, values and queries, with the flag of kvdump that stores it.
std::string needs_text(const methods::MethodInfo& method) {
  const auto text = [](methods::Part part) {
    switch (part) {
      case methods::Part::observed_queries:
        return "queries inside the context (kvdump stores 128 by default; more with --queries)";
      case methods::Part::column_sums:
        return "column sums of the context (--column-sums)";
      case methods::Part::keys_pre_rope:
        return "keys before RoPE (--pre-rope)";
      case methods::Part::speculated_queries:
        return "speculated queries (--speculated)";
      case methods::Part::output_sketch:
        return "sketches of W_O, which kvbench-dump-hf writes";
    }
    return "";
  };
  std::vector<std::string> parts;
  for (const methods::Part part : method.needs) parts.emplace_back(text(part));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string traits(const methods::MethodInfo& m) {
  std::vector<std::string> traits;
  if (m.seeded)
    traits.emplace_back(m.draws ? "depends on the seed, but not with parameters that draw nothing"
                                : "depends on the seed");
  if (m.streaming) traits.emplace_back("streaming");
  if (m.observes) traits.emplace_back("observes each decode step");
  if (m.windowed) traits.emplace_back("replays sliding windows");
  if (m.calibrates())
    traits.emplace_back(m.calibrates_on == methods::CalibratesOn::prompt
                            ? "calibrates on the prompt that it compresses (or another text: --calibrate)"
                            : "calibrates on another text (--calibrate)");
  return fmt::format("{}", fmt::join(traits, ", "));
}

/// The properties that the method lacks, and why.
std::vector<std::string> lacks(const methods::Properties& properties) {
  const std::pair<const char*, const methods::Property*> all[] = {
      {"a budget of the whole context gives the exact output", &properties.full_budget_exact},
      {"scaling all values scales the output by the same factor", &properties.value_scaling},
      {"adding the same vector to all keys changes nothing", &properties.key_shift},
      {"results do not depend on the number of the kv head", &properties.head_permutation},
      {"a larger budget keeps all that a smaller one keeps", &properties.nested_budgets},
      {"caches of equal budgets and shapes take equal bytes", &properties.equal_bytes},
  };
  std::vector<std::string> broken;
  for (const auto& [what, property] : all) {
    if (!property->holds) broken.push_back(fmt::format("\"{}\": {}", what, property->reason));
  }
  return broken;
}

/// The name of a method as a command line has it; of a wrapper around snapkv.
std::string name_in_command(const methods::MethodInfo& method) {
  return method.prepare ? method.name : fmt::format("\"{}(snapkv)\"", method.name);
}

/// The method with its first parameter at the default, as an argument of a shell.
std::string with_parameter(const methods::MethodInfo& method) {
  if (method.params.empty()) return name_in_command(method);
  const methods::ParamSpec& first = method.params.front();
  return fmt::format("\"{}{}[{}={}]\"", method.name, method.prepare ? "" : "(snapkv)", first.name,
                     first.default_value.empty() ? "FILE" : first.default_value);
}

/// The start of an example: a replay of the bundled trace, which has the queries of the last 80 tokens of its contexts,
/// or of a trace that kvdump records, if the method needs others.
std::string example_replay(const methods::MethodInfo& method) {
  methods::ContextData bundled{.tokens = 1024, .column_sums = true};
  for (std::int32_t token = 944; token < 1024; ++token) bundled.observed.push_back(token);
  try {
    if (method.check_data) method.check_data(bundled, method.bind({}));
  } catch (const methods::Unavailable&) {
    return "kvdump model.gguf --text prompt.txt --queries all -o all.h5; kvbench replay all.h5";
  }
  return "kvbench replay traces/smollm2-135m.h5";
}

/// Budgets at which every method of the kind runs; heads of two kinds hold hundreds of tokens each.
const char* example_budgets(const methods::MethodInfo& method) {
  if (method.kind == methods::Kind::quantisation) return "100%mem";
  if (method.plan && method.granularity == methods::Granularity::layer) return "50%";
  return method.kind == methods::Kind::retrieval ? "128,50%read" : "128,25%";
}

std::string example(const methods::MethodInfo& method) {
  return fmt::format("{} --method {} --budget {}{}", example_replay(method), with_parameter(method),
                     example_budgets(method), method.score_of_head ? " --calibrate other.h5" : "");
}

}  // namespace

std::string list_text(std::optional<methods::Kind> kind) {
  std::size_t width = 0;
  for (const methods::MethodInfo& m : methods::all_methods()) width = std::max(width, m.name.size());
  std::string out;
  for (const methods::MethodInfo& m : methods::all_methods()) {
    if (!kind || m.kind == *kind) out += fmt::format("{:<{}}  {:<12}  {}\n", m.name, width, name_of(m.kind), m.summary);
  }
  if (kind) return out;
  for (const methods::Wrapper& w : methods::all_wrappers())
    out += fmt::format("{:<{}}  {:<12}  {}\n", w.info.name, width, "wrapper", w.info.summary);
  return out +
         fmt::format("\n--method all leaves out {}, and also replays {}. --method eviction replays that kind alone.\n",
                     fmt::join(left_out(), ", "), fmt::join(also_replayed(), ", "));
}

std::string method_table() {
  std::string out = "| method | kind | source | what it keeps |\n| --- | --- | --- | --- |\n";
  for (const methods::MethodInfo& m : methods::all_methods()) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", m.name, name_of(m.kind), cell(m.paper), cell(m.summary));
  }
  for (const methods::Wrapper& wrapper : methods::all_wrappers()) {
    const methods::MethodInfo& m = wrapper.info;
    out += fmt::format("| `{}` | wrapper | {} | {} |\n", m.name, cell(m.paper), cell(m.summary));
  }
  return out + fmt::format("\n`--method all` leaves out `{}`, and also replays `{}`.\n", fmt::join(left_out(), "`, `"),
                           fmt::join(also_replayed(), "`, `"));
}

std::string details(const methods::MethodInfo& m) {
  std::string out = fmt::format("{}: {}\n", m.name, m.summary);
  const auto add = [&](const char* what, const std::string& text) {
    if (!text.empty()) out += fmt::format("  {:<11}  {}\n", what, text);
  };
  add("aliases", fmt::format("{}", fmt::join(m.aliases, ", ")));
  add("source", m.paper);
  add("kind", std::string(name_of(m.kind)));
  if (m.kind != methods::Kind::quantisation) add("selection", fmt::format("per {}", granularity_name(m.granularity)));
  add("needs", needs_text(m));
  add("compress", m.complexity.compress.text);
  add("query", m.complexity.query.text);
  add("memory", m.complexity.memory.text);
  add("variants", fmt::format("{}", fmt::join(variant_names({&m, 1}), ", ")));
  add("traits", traits(m));
  for (const std::string& property : lacks(m.properties)) add("lacks", property);
  add("notes", m.notes);
  add("checks", fmt::format("kvbench validate --list --method {}", m.name));
  add("example", example(m));
  if (!m.params.empty()) add("parameters", fmt::format("(--set {}.NAME=VALUE)", name_in_command(m)));
  for (const methods::ParamSpec& p : m.params) {
    out += fmt::format("    {} = {}  [{}{}]\n        {}\n", p.name, p.default_value, p.type,
                       p.range.empty() ? "" : ", " + p.range, p.doc);
  }
  return out;
}

}  // namespace kvbench::app
