// SPDX-License-Identifier: Apache-2.0
// A TOML file as a tree in which every key and value has its place in the file, for use in error messages. No other
// file includes the TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/error.hpp>

namespace kvbench::config {

/// A position in a file.
struct Place {
  std::string file;
  std::uint32_t line = 0, column = 0;
  std::string text() const;  ///< "file:line:column"
};

/// Throws Error that begins with the place.
template <class... Args>
[[noreturn]] void fail_at(const Place& place, fmt::format_string<Args...> format, Args&&... args) {
  throw Error("{}: {}", place.text(), fmt::format(format, std::forward<Args>(args)...));
}

/// Calls `work`; an Error is rethrown with the place before its message.
template <class F>
decltype(auto) with_place(const Place& place, F work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error("{}: {}", place.text(), error.what());
  }
}

struct Member;
struct Value {
  enum class Kind { text, integer, number, flag, list, table };
  Kind kind = Kind::table;
  Place place;
  std::string text;             ///< of a scalar, such as "4", "0.5" or "true"; of a text, the text itself
  std::vector<Value> items;     ///< of a list
  std::vector<Member> members;  ///< of a table, in the order of the file
};
struct Member {
  std::string key;
  Place place;  ///< of the key
  Value value;
};

/// A description for messages: "the text 'x'", "the number 3", "a list".
std::string describe(const Value& value);

/// The text of a member. Throws Error with its place where it is no text.
const std::string& text_of(const Member& member);

/// The text of a file of TOML that is at most so long. Throws Error, which says what was wanted ("a plan"), where it is
/// missing or a file of another kind.
std::string toml_text(const std::string& path, std::string_view what, std::uint64_t most);
/// Reads a whole sweep file. Throws as toml_text(), and Error where it is not valid TOML, with the place.
Value read_toml(const std::string& path);
/// The same for the text of the file `path`, which need not exist.
Value parse_toml(const std::string& path, const std::string& text);

}  // namespace kvbench::config
