// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/method_text.hpp>

#include <algorithm>

namespace kvbench::methods {

std::optional<MethodText> parse_method_text(std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == text.npos) return MethodText{std::string(text), std::nullopt};
  if (text.find(']') != text.size() - 1 || text.rfind('[') != open) return std::nullopt;
  return MethodText{std::string(text.substr(0, open)), std::string(text.substr(open + 1, text.size() - open - 2))};
}

std::vector<Assignment> parse_settings(std::string_view settings) {
  std::vector<Assignment> out;
  while (!settings.empty()) {
    const std::string_view item = settings.substr(0, settings.find_first_of(",;"));
    const std::size_t equals = item.find('=');
    if (equals == item.npos || equals == 0) throw Error("'{}' is not PARAMETER=VALUE, such as window=64", item);
    out.push_back({std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))});
    settings.remove_prefix(std::min(item.size() + 1, settings.size()));
  }
  return out;
}

}  // namespace kvbench::methods
