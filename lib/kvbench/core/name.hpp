// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvbench {

/// Throws Error, which begins with `where`, unless `name` is UTF-8 text without control characters (U+0000 to U+001F,
/// U+007F to U+009F). Names become cells of tables and words of messages, which other programs read line by line.
void check_name(std::string_view name, const std::string& where);

/// The names of files without their folders; as they are given, for tables, where others of the files have the same.
std::vector<std::string> distinct_names(std::span<const std::string> paths);

/// An ASCII letter in lower case, whatever the locale; other characters as they are.
constexpr char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The text without the spaces at its ends, as users write in lists: "snapkv, h2o".
constexpr std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Whether two names are equal but for the case of ASCII letters.
bool same_name(std::string_view a, std::string_view b);

/// The known name that `name` of at least two letters begins, without case, else the nearest by edit distance (insert,
/// delete, replace, swap neighbours), up to a third of the longer length (at least 1), else one that begins `name`; ""
/// where there is none.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

/// " Did you mean 'x'?" or "". Of a name that begins several known ones, the three shortest: "'q4_0' or 'q4_1'".
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// "a, b, c"; of more than 20 names the first 20 and the number of the others.
std::string listed(std::span<const std::string> names);

}  // namespace kvbench
