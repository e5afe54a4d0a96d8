// SPDX-License-Identifier: Apache-2.0
// A TOML file as a tree in which every key and value knows where it stands, so that each later complaint can say it too. No
// other file sees the TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kvbench/core/error.hpp>

namespace kvbench::config {

/// Where something stands in a file.
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

/// Runs `work`; an Error that it throws is thrown again with the place before it.
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
  std::string text;             ///< of a scalar: the text itself, "4", "0.5", "true"
  std::vector<Value> items;     ///< of a list
  std::vector<Member> members;  ///< of a table, in the order of the file
};
struct Member {
  std::string key;
  Place place;  ///< of the key
  Value value;
};

/// "the text 'x'", "the number 3", "a list" ... for messages.
std::string describe(const Value& value);

/// Reads the whole file. Throws Error with the place where it is missing or no TOML.
Value read_toml(const std::string& path);

}  // namespace kvbench::config
