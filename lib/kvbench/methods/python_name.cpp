// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/python_name.hpp>

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {
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
