// SPDX-License-Identifier: Apache-2.0
// A strict reader of JSON (RFC 8259), which says of a text whether it is JSON, and what its value is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvbench::eval {

enum class Json {
  valid,
  cut,    ///< the beginning of a text that is valid
  broken  ///< neither, whatever follows
};
std::string_view name_of(Json json);

/// One value, with white space around it, by the grammar: an escaped surrogate may stand alone, keys may be equal,
/// numbers have any size, and there is no byte order mark. Values may be nested to any depth.
Json read_json(std::string_view text);

/// A value of JSON. Literals and numbers that are no whole ones have no content here.
struct JsonValue {
  static constexpr std::size_t deepest = 64;  ///< that values may be nested
  enum class Kind { other, whole, text, list, object } kind = Kind::other;
  long whole = 0;
  std::string text;                ///< UTF-8
  std::vector<JsonValue> items;    ///< of a list, and the values of an object
  std::vector<std::string> names;  ///< of an object
  /// The value of an object's first key of this name; nullptr: there is none.
  const JsonValue* find(std::string_view name) const;
};
/// The value of a text. Throws Error with `place`, column and `remedy` unless it is JSON whose escaped surrogates are
/// pairs.
JsonValue json_value_of(std::string_view text, const std::string& place, const char* remedy);

/// The first line of a text, which is a record and what an answer adds to it. A line that ends must be valid: it is
/// `cut` only if the text has no line end, and `ended` is false: the answer has all the tokens that it may have.
Json read_json_line(std::string_view text, bool ended);

}  // namespace kvbench::eval
