// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/method_text.hpp>

#include <algorithm>

#include <kvbench/core/name.hpp>

namespace kvbench::methods {

std::optional<MethodText> parse_method_text(std::string_view given) {
  const std::string_view text = trimmed(given);
  std::size_t open = text.find('[');
  if (open == text.npos && (text.ends_with(')') || text.ends_with('}'))) {
    const std::size_t other = text.rfind(text.ends_with(')') ? '(' : '{');
    const std::string_view inside = text.substr(std::min(other, text.size() - 1));  // with its first bracket
    const bool holds = inside.find('=') != inside.npos || inside.size() == 2;
    if (other != text.npos && holds && inside.find(text.back()) != inside.size() - 1) return std::nullopt;
    if (other != text.npos && holds) open = other;
  } else if (open != text.npos && (text.find(']') != text.size() - 1 || text.rfind('[') != open)) {
    return std::nullopt;
  }
  if (open == text.npos) return MethodText{std::string(text), std::nullopt};
  return MethodText{std::string(trimmed(text.substr(0, open))),
                    std::string(text.substr(open + 1, text.size() - open - 2))};
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
