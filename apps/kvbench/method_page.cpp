// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/method_page.hpp>

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/methods/sets.hpp>

#include <apps/common/rows/column_page.hpp>

namespace kvbench::app {
namespace {

/// What the method needs of a trace beside keys, values and queries; empty: nothing.
std::string needs_text(const methods::MethodInfo& method) {
  std::string out;
  for (const methods::Part part : method.needs) {
    if (!out.empty()) out += "; ";
    switch (part) {
      case methods::Part::observed_queries:
        out += "queries inside the context (kvdump stores 128 by default; more with `--queries`)";
        break;
      case methods::Part::column_sums:
        out += "column sums of the context (`--column-sums`)";
        break;
      case methods::Part::keys_pre_rope:
        out += "keys before RoPE (`--pre-rope`)";
        break;
      case methods::Part::speculated_queries:
        out += "speculated queries (`--speculated`)";
        break;
      case methods::Part::output_sketch:
        out += "sketches of W_O, which kvbench-dump-hf writes";
        break;
    }
  }
  return out;
}

std::string facts(const methods::MethodInfo& method) {
  std::string out = "| | |\n| --- | --- |\n";
  const auto add = [&](const char* what, const std::string& text) {
    out += fmt::format("| {} | {} |\n", what, cell(text));
  };
  const auto yes = [](bool is, const char* so, const char* not_so) { return std::string(is ? so : not_so); };
  add("source", with_links(method.paper));
  if (!method.aliases.empty()) add("aliases", fmt::format("`{}`", fmt::join(method.aliases, "`, `")));
  add("kind", std::string(name_of(method.kind)));
  add("selection", fmt::format("per {}", granularity_name(method.granularity)));
  if (!method.variants.empty())
    add("variants",
        fmt::format("`{}`, rows of their own in `--method all`", fmt::join(variant_names({&method, 1}), "`, `")));
  if (!method.needs.empty()) add("data of the trace", needs_text(method));
  if (method.calibrates())
    add("calibration",
        fmt::format("on the text that `--calibrate` names{}",
                    method.score_of_head ? "; without it rows are `skipped`" : ", else on the evaluated context"));
  if (method.windowed) add("sliding windows", "such layers are replayed");
  add("protocols", yes(method.streaming, "`prefill`, `decode`, `stream`", "`prefill`, `decode`"));
  if (method.observes) add("while decoding", "observes the attention of each step");
  add("seeds", yes(method.seeded,
                   method.draws ? "results depend on the seed, except with parameters that draw nothing"
                                : "results depend on the seed",
                   "none"));
  return out;
}

std::string growth(double exponent) {
  if (exponent == 0) return "";
  return exponent == 1 ? "n" : fmt::format("n^{:g}", exponent);
}

std::string cost_table(const methods::Complexity& cost) {
  std::string out = "| | | grows with |\n| --- | --- | --- |\n";
  const auto add = [&](const char* what, const methods::Complexity::Cost& of) {
    out += fmt::format("| {} | {} | {} |\n", what, cell(of.text), growth(of.growth));
  };
  add("time to compress", cost.compress);
  add("time of a query", cost.query);
  add("memory", cost.memory);
  return out;
}

std::string property_table(const methods::Properties& properties) {
  const std::pair<const char*, const methods::Property*> rows[] = {
      {"a budget of the whole context gives the exact output", &properties.full_budget_exact},
      {"scaling all values scales the output by the same factor", &properties.value_scaling},
      {"adding the same vector to all keys changes nothing", &properties.key_shift},
      {"results do not depend on the number of the kv head", &properties.head_permutation},
      {"a larger budget keeps all that a smaller one keeps", &properties.nested_budgets},
      {"caches of equal budgets and shapes take equal bytes", &properties.equal_bytes},
  };
  std::string broken;
  for (const auto& [what, property] : rows) {
    if (!property->holds) broken += fmt::format("| {} | {} |\n", what, cell(property->reason));
  }
  const std::string all = "It has all properties";
  return broken.empty() ? all + ".\n" : all + " but\n\n| property | why not |\n| --- | --- |\n" + broken;
}

/// Of the checks, which kvbench-validate knows. scripts/docs puts them here.
std::string checks(const methods::MethodInfo& method) {
  return fmt::format("\n## Theorems and claims\n`kvbench validate --list --method {}` lists those about it.\n",
                     method.name);
}

std::string parameter_table(const methods::MethodInfo& method) {
  std::string out = "| parameter | default | values | meaning |\n| --- | --- | --- | --- |\n";
  for (const methods::ParamSpec& p : method.params) {
    out += fmt::format("| `{}` | {} | {}{} | {} |\n", p.name, cell(p.default_value), cell(p.type),
                       p.range.empty() ? "" : ", " + cell(p.range), cell(p.doc));
  }
  return out;
}

/// The method with its first parameter at the default, as an argument of a shell.
std::string with_parameter(const methods::MethodInfo& method) {
  if (method.params.empty()) return name_in_command(method);
  const methods::ParamSpec& first = method.params.front();
  return fmt::format("\"{}{}[{}={}]\"", method.name, method.prepare ? "" : "(snapkv)", first.name,
                     first.default_value.empty() ? "FILE" : first.default_value);
}

/// The start of an example: a replay of the bundled trace, which has the queries of the last 80 tokens of its contexts,
/// or where a method needs others, the dump of a trace that has them before it.
std::string example_replay(const methods::MethodInfo& method) {
  methods::ContextData bundled{.tokens = 1024, .column_sums = true};
  for (std::int32_t token = 944; token < 1024; ++token) bundled.observed.push_back(token);
  try {
    if (method.check_data) method.check_data(bundled, method.bind({}));
  } catch (const methods::Unavailable&) {
    return "    kvdump model.gguf --text prompt.txt --queries all -o all.h5\n    kvbench replay all.h5";
  }
  return "    kvbench replay traces/smollm2-135m.h5";
}

}  // namespace

const char* granularity_name(methods::Granularity granularity) {
  constexpr const char* names[] = {"kv head", "query head", "layer", "model"};
  return names[static_cast<int>(granularity)];
}

std::vector<std::string> variant_names(std::span<const methods::MethodInfo> methods) {
  std::vector<std::string> names;
  for (const methods::MethodInfo& m : methods) {
    for (const auto& settings : m.variants) names.push_back(compare::label_of({m.name, m.bind(settings).text(), {}}));
  }
  return names;
}

std::vector<std::string> also_replayed() {
  std::vector<std::string> names = variant_names(methods::all_methods());
  for (const auto& [info, settings] : methods::rows_of_set("all")) {
    const auto same = [one = info](const methods::MethodInfo& method) { return one == &method; };
    if (std::ranges::none_of(methods::all_methods(), same)) names.push_back(info->name);
  }
  return names;
}

std::vector<std::string> left_out() {
  std::vector<std::string> names;
  for (const methods::MethodInfo& method : methods::all_methods()) {
    const auto same = [&](const methods::MethodSettings& row) { return row.info == &method; };
    if (std::ranges::none_of(methods::rows_of_set("all"), same)) names.push_back(method.name);
  }
  return names;
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

/// Budgets at which every method of the kind runs; heads of two kinds hold hundreds of tokens each.
const char* example_budgets(const methods::MethodInfo& method) {
  if (method.kind == methods::Kind::quantisation) return "100%mem";
  if (method.plan && method.granularity == methods::Granularity::layer) return "50%";
  return method.kind == methods::Kind::retrieval ? "128,50%read" : "128,25%";
}

std::string name_in_command(const methods::MethodInfo& method) {
  return method.prepare ? method.name : fmt::format("\"{}(snapkv)\"", method.name);
}

std::string method_page(const methods::MethodInfo& method) {
  std::string out = fmt::format("# {}\n\nWhat it keeps: {}.\n\n{}\n", method.name, method.summary, facts(method));
  out += fmt::format("{} --method {} --budget {}", example_replay(method), with_parameter(method),
                     example_budgets(method));
  if (method.score_of_head) out += " --calibrate other.h5";
  out += fmt::format("\n\n## Notes\n{}\n\n## Parameters\n", method.notes);
  out += method.params.empty() ? "None.\n" : parameter_table(method);
  out += fmt::format("\n## Cost\n{}", cost_table(method.complexity));
  out += checks(method);
  return out + "\n## Properties\n" + property_table(method.properties);
}

}  // namespace kvbench::app
