// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/wrapper.hpp>

#include <algorithm>

#include <kvbench/core/name.hpp>

namespace kvbench::methods {

std::optional<WrappedName> parse_wrapped(std::string_view name) {
  constexpr std::string_view signs = "@-_";
  const auto in_name = [&](char given) {
    const char c = lower_case(given);
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || signs.find(c) != signs.npos;
  };
  const std::size_t open = name.find('('), close = name.rfind(')');
  if (open == 0 || open == name.npos || close == name.npos || close < open) return std::nullopt;
  const WrappedName parts{name.substr(0, open), trimmed(name.substr(open + 1, close - open - 1)),
                          trimmed(name.substr(close + 1))};
  const bool ends = parts.after.empty() || parts.after.starts_with('+');  // else the brackets are of a path
  return ends && std::ranges::all_of(parts.wrapper, in_name) ? std::optional(parts) : std::nullopt;
}

}  // namespace kvbench::methods
