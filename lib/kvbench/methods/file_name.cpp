// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/file_name.hpp>

#include <kvbench/methods/contract/layer_plan.hpp>
#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

std::string_view file_in(std::string_view name) {
  if (is_plan(name)) return name.substr(plan_prefix.size());
  const auto wrapped = parse_wrapped(name);
  const std::string_view own = wrapped ? wrapped->inside : name;
  if (is_scores(own)) {
    const std::size_t end = own.rfind(scores_ending);
    if (end == own.npos || end < scores_prefix.size()) return own.substr(scores_prefix.size());
    return own.substr(scores_prefix.size(), end + scores_ending.size() - scores_prefix.size());
  }
  const auto python = parse_python_name(own);
  return python ? own.substr(0, python->file.size()) : std::string_view();
}

namespace {

std::string (*source_of)(const std::string&) = nullptr;

}  // namespace

std::optional<PythonName> parse_python_name(std::string_view name) {
  constexpr std::string_view defined = "py:", ending = ".py:";
  if (const auto wrapped = parse_wrapped(name)) {
    if (auto inside = parse_python_name(wrapped->inside)) return inside;
  }
  if (name.starts_with(defined)) return PythonName{"", std::string(name.substr(defined.size()))};
  const std::size_t at = name.rfind(ending);
  if (at == 0 || at == name.npos) return std::nullopt;
  const std::size_t colon = at + ending.size() - 1;
  return PythonName{std::string(name.substr(0, colon)), std::string(name.substr(colon + 1))};
}

std::string source_sha256(const std::string& file) { return source_of != nullptr ? source_of(file) : ""; }

void set_source_sha256(std::string (*of_file)(const std::string&)) { source_of = of_file; }

}  // namespace kvbench::methods
