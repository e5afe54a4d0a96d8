// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/name.hpp>

#include <algorithm>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench {

void check_name(std::string_view name, const std::string& where) {
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_character(name.substr(i));
    if (length == 0) throw Error("{} is not UTF-8 text (byte {}); choose a name in UTF-8.", where, i);
    if (is_control(name.substr(i, length))) {
      throw Error("{} has a control character (byte {} is 0x{:02x}); choose a name without control characters.", where,
                  i + length - 1, static_cast<unsigned char>(name[i + length - 1]));
    }
    i += length;
  }
}

std::vector<std::string> distinct_names(std::span<const std::string> paths) {
  const auto base = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const auto clashes = [&](const std::string& other) { return other != path && base(other) == base(path); };
    names.push_back(printable(std::ranges::any_of(paths, clashes) ? path : base(path)));
  }
  return names;
}

}  // namespace kvbench
