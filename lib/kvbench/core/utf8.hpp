// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvbench {

/// Length in bytes of the UTF-8 character with which the text begins (RFC 3629); 0 where it begins with none. The text
/// is not empty.
std::size_t utf8_character(std::string_view text);

/// Whether a UTF-8 character shows nothing, breaks the line or commands a terminal: U+0000 to U+001F and U+007F to
/// U+009F.
constexpr bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  return character.size() == 1 ? byte(0) < 0x20 || byte(0) == 0x7F : byte(0) == 0xC2 && byte(1) < 0xA0;
}

/// The text with every byte that is not UTF-8, and every control character that is not in `kept`, as \xHH.
std::string printable(std::string_view text, std::string_view kept = {});

}  // namespace kvbench
