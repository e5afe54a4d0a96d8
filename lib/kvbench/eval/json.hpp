// SPDX-License-Identifier: Apache-2.0
// A strict reader of JSON (RFC 8259), which says of a text whether it is JSON. It keeps no values.
#pragma once

#include <string_view>

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

/// The first line of a text, which is a record and what an answer adds to it. A line that ends must be valid: it is
/// `cut` only if the text has no line end, and `ended` is false: the answer has all the tokens that it may have.
Json read_json_line(std::string_view text, bool ended);

}  // namespace kvbench::eval
