// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/configuration_name.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include <fmt/ranges.h>

#include <kvbench/core/budget.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/contract/method_name.hpp>
#include <kvbench/methods/registry.hpp>

namespace kvbench::compare {
namespace {

/// "t=4;delta=2" and "delta=2,t=4" are the same parameters.
std::set<std::string> parameters_of(std::string text) {
  std::ranges::replace(text, ',', ';');
  std::set<std::string> parameters;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one, ';');) parameters.insert(one);
  return parameters;
}

/// The text that results have for parameters as written: without those with their default value. Absent where the
/// method is not in the registry, or does not accept them; those of plans and of scores are of files that may be others
/// by now.
std::optional<std::string> canonical(const std::string& method, const std::string& params) {
  const methods::MethodName name = methods::parse_method_name(method);
  if (name.origin == methods::Origin::plan || name.origin == methods::Origin::scores) return std::nullopt;
  try {
    return methods::find_method(name).bind(methods::parse_settings(params)).text();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Whether parameters as written are those of a configuration.
bool same_params(const std::string& written, const QueryConfiguration& configuration) {
  const std::set<std::string> has = parameters_of(configuration.params);
  if (parameters_of(written) == has) return true;
  const std::optional<std::string> text = canonical(configuration.method, written);
  return text && parameters_of(*text) == has;
}

/// Distinct texts in the order of their first appearance.
template <class F>
std::vector<std::string> distinct(std::span<const QueryConfiguration> known, F text) {
  std::vector<std::string> all;
  for (const QueryConfiguration& one : known) {
    const std::optional<std::string> value = text(one);
    if (value && std::ranges::find(all, *value) == all.end()) all.push_back(*value);
  }
  return all;
}

/// A budget as results have it: 25% for 0.25.
std::string in_other_words(const std::string& budget) {
  const std::optional<Budget> known = Budget::find(budget);
  return known ? known->text() : budget;
}

}  // namespace

ConfigurationName parse_configuration(std::string_view text, std::string_view flag) {
  const auto reject = [&](std::string_view why) {
    throw Error("{} '{}': {}; write METHOD, METHOD[PARAMS] or METHOD@BUDGET, such as subgen[t=4]@25%", flag, text, why);
  };
  ConfigurationName name;
  std::string_view rest = text;
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (code == std::errc{} && end != rest.data() + rest.size() && *end == ':') {
    if (number == 0) reject("files are numbered from 1");
    name.file = number - 1;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  }
  // Values of parameters may contain an @, but budgets contain no bracket.
  const std::size_t at = rest.rfind('@');
  if (at != std::string_view::npos && (rest.find_last_of("])}") == rest.npos || at > rest.find_last_of("])}"))) {
    name.budget = std::string(rest.substr(at + 1));
    rest = rest.substr(0, at);
  }
  std::optional<methods::MethodName> method = methods::parse_method_text(rest);
  if (!method) reject("brackets stand once, after the method");
  name.method = method->name();
  name.params = std::move(method->settings);
  if (name.method.empty()) reject("the method is missing");
  return name;
}

bool matches(const ConfigurationName& name, const QueryConfiguration& configuration) {
  return same_name(configuration.method, name.method) && (!name.params || same_params(*name.params, configuration)) &&
         (!name.budget || configuration.budget.text() == *name.budget);
}

std::string method_meant(const std::string& written, std::span<const std::string> known, std::string_view flag) {
  if (std::ranges::find(known, written) != known.end()) return written;
  std::vector<std::string> same, ending;
  for (const std::string& name : known) {
    const std::size_t before = name.size() - std::min(name.size(), written.size());
    if (!same_name(name.substr(before), written)) continue;
    if (before == 0) same.push_back(name);
    if (before > 0 && (name[before - 1] == ':' || name[before - 1] == '/')) ending.push_back(name);
  }
  if (!same.empty()) return same.front();
  if (ending.size() > 1)
    throw Error("{}: '{}' may mean {} methods; give one of {}.", flag, written, ending.size(), fmt::join(ending, ", "));
  return ending.empty() ? written : ending.front();
}

ConfigurationName resolved(ConfigurationName name, std::span<const QueryConfiguration> known, std::string_view flag) {
  const auto refuse = [&](std::string_view what, const std::string& asked, const std::vector<std::string>& has) {
    if (std::ranges::find(has, asked) != has.end()) return;
    throw Error("{}: there is no {} '{}' in the results.{} There is: {}.", flag, what, asked, did_you_mean(asked, has),
                fmt::join(has, ", "));
  };
  const auto methods = distinct(known, [](const auto& c) { return std::optional(c.method); });
  name.method = method_meant(name.method, methods, flag);
  refuse("method", name.method, methods);
  const auto labels = distinct(
      known, [&](const auto& c) { return c.method == name.method ? std::optional(label_of(c)) : std::nullopt; });
  auto right = distinct(known, [&](const auto& c) {
    const bool fits = c.method == name.method && (!name.params || same_params(*name.params, c));
    return fits ? std::optional(label_of(c)) : std::nullopt;
  });
  if (right.empty()) refuse("configuration", fmt::format("{}[{}]", name.method, *name.params), labels);
  if (right.size() > 1 && std::ranges::find(right, name.method) != right.end()) {
    name.params = "";
    right = {name.method};
  }
  if (right.size() > 1) {
    throw Error("{}: '{}' matches {} configurations, none with the default parameters; give one of {}.", flag,
                name.method, right.size(), fmt::join(right, ", "));
  }
  if (!name.budget) return name;
  const auto budgets = distinct(
      known, [&](const auto& c) { return label_of(c) == right[0] ? std::optional(c.budget.text()) : std::nullopt; });
  if (std::ranges::find(budgets, *name.budget) == budgets.end()) name.budget = in_other_words(*name.budget);
  refuse("budget", *name.budget, budgets);
  return name;
}

std::string label_of(const QueryConfiguration& c) {
  return c.params.empty() ? c.method : fmt::format("{}[{}]", c.method, c.params);
}

QueryConfiguration configuration_of(const std::string& label) {
  const std::size_t open = label.ends_with(']') ? label.find('[') : label.npos;
  if (open == label.npos) return {label, "", {}};
  return {label.substr(0, open), label.substr(open + 1, label.size() - open - 2), {}};
}

}  // namespace kvbench::compare
