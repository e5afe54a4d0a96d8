// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/method_name.hpp>

#include <algorithm>

#include <kvbench/core/name.hpp>

namespace kvbench::methods {
namespace {

constexpr std::string_view plan_prefix = "plan:", scores_prefix = "scores:", scores_ending = ".h5";
constexpr std::string_view python_prefix = "py:", python_ending = ".py:", python_file = ".py";

/// The length of the start of a name that belongs to a path, with what says so: "plan:a+b", "scores:a+b.h5",
/// "a+b.py:", "py:"; 0 if the name begins with none.
std::size_t path_size(std::string_view name) {
  if (name.starts_with(plan_prefix)) return name.size();
  if (name.starts_with(scores_prefix)) {
    const std::size_t end = name.rfind(scores_ending);
    return end == name.npos || end < scores_prefix.size() ? name.size() : end + scores_ending.size();
  }
  if (name.starts_with(python_prefix)) return python_prefix.size();
  const std::size_t end = name.rfind(python_ending);
  if (end == 0 || end == name.npos) return 0;
  const std::size_t object = end + python_ending.size();
  const bool wrapped = name.find_first_of("()[]{}", object) != name.npos;  // the path is inside these brackets
  return wrapped ? 0 : object;
}

/// The places of the brackets of a wrapper, both 0 if there is none.
struct Brackets {
  std::size_t open = 0, close = 0;
};
Brackets brackets_of(std::string_view name) {
  constexpr std::string_view signs = "@-_";
  const auto in_wrapper = [&](char given) {
    const char c = lower_case(given);
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || signs.find(c) != signs.npos;
  };
  const std::size_t open = name.find('('), close = name.rfind(')');
  if (open == 0 || open == name.npos || close == name.npos || close < open) return {};
  const std::string_view after = trimmed(name.substr(close + 1));
  const bool holds = !trimmed(name.substr(open + 1, close - open - 1)).empty();
  const bool ends = after.empty() || after.starts_with('+');
  return holds && ends && std::ranges::all_of(name.substr(0, open), in_wrapper) ? Brackets{open, close} : Brackets{};
}

void read_origin(MethodName& name) {
  const std::string_view base = name.base;
  const std::size_t path = path_size(base);
  if (path == 0) {
    if (base.size() <= python_file.size() || !base.ends_with(python_file)) return;
    name.origin = Origin::python, name.file = base;
    return;
  }
  name.origin = base.starts_with(plan_prefix)     ? Origin::plan
                : base.starts_with(scores_prefix) ? Origin::scores
                                                  : Origin::python;
  if (name.origin == Origin::plan) name.file = base.substr(plan_prefix.size());
  if (name.origin == Origin::scores) name.file = base.substr(scores_prefix.size());
  if (name.origin != Origin::python) return;
  name.object = base.substr(path);
  if (!base.starts_with(python_prefix)) name.file = base.substr(0, path - 1);
}

}  // namespace

std::string MethodName::name() const {
  return (wrapper.empty() ? base : wrapper + "(" + base + ")") + (quantiser ? "+" + *quantiser : "");
}

std::string MethodName::text() const { return name() + (settings ? "[" + *settings + "]" : ""); }

MethodName MethodName::with_file(const std::string& path) const {
  MethodName other = *this;
  if (file.empty()) return other;
  const std::size_t before = origin == Origin::python ? 0 : base.size() - file.size();
  other.base.replace(before, file.size(), path);
  other.file = path;
  return other;
}

std::vector<Assignment> MethodName::assignments() const { return parse_settings(settings.value_or("")); }

MethodName parse_method_name(std::string_view given) {
  const std::string_view text = trimmed(given);
  MethodName name;
  const std::size_t path = path_size(text);
  const auto [open, close] = path == 0 ? brackets_of(text) : Brackets{};
  const std::size_t plus = text.find('+', std::max(path, close));
  if (plus != text.npos) name.quantiser = trimmed(text.substr(plus + 1));
  name.wrapper = text.substr(0, open);
  name.base = trimmed(close > 0 ? text.substr(open + 1, close - open - 1) : text.substr(0, plus));
  read_origin(name);
  return name;
}

std::optional<MethodName> parse_method_text(std::string_view given) {
  const std::string_view text = trimmed(given);
  std::size_t open = text.find('[');
  if (open == text.npos && (text.ends_with(')') || text.ends_with('}'))) {
    const std::size_t other = text.rfind(text.ends_with(')') ? '(' : '{');
    const std::string_view inside = text.substr(std::min(other, text.size() - 1));  // with its first bracket
    const bool empty = inside.find_first_not_of(' ', 1) == inside.size() - 1;
    const bool holds = inside.find('=') != inside.npos || empty;
    const bool one_pair = inside.find(text.back()) == inside.size() - 1 && text.find(']') == text.npos;
    if (other != text.npos && holds && !one_pair) return std::nullopt;
    if (other != text.npos && holds) open = other;
  } else if (open != text.npos && (text.find(']') != text.size() - 1 || text.rfind('[') != open)) {
    return std::nullopt;
  }
  MethodName name = parse_method_name(text.substr(0, open));
  if (open != text.npos) name.settings = text.substr(open + 1, text.size() - open - 2);
  return name;
}

std::vector<Assignment> parse_settings(std::string_view settings) {
  std::vector<Assignment> out;
  while (!settings.empty()) {
    const std::string_view item = settings.substr(0, settings.find_first_of(",;"));
    const std::size_t equals = item.find('=');
    if (equals == item.npos || equals == 0) throw Error("'{}' is not PARAMETER=VALUE, such as window=64", item);
    const std::string_view name = trimmed(item.substr(0, equals));
    const auto same = [&](const Assignment& other) { return same_name(other.name, name); };
    if (std::ranges::any_of(out, same)) throw Error("'{}' is given twice; give it once", name);
    out.push_back({std::string(name), std::string(item.substr(equals + 1))});
    settings.remove_prefix(std::min(item.size() + 1, settings.size()));
  }
  return out;
}

}  // namespace kvbench::methods
