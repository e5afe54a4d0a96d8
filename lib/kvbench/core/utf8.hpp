// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace kvbench {

/// Length in bytes of the UTF-8 character with which the text begins (RFC 3629); 0 where it begins with none. The text
/// is not empty.
std::size_t utf8_character(std::string_view text);

/// Whether a text shows such a byte as nothing, or as a line break: 0x00 to 0x1F and 0x7F.
constexpr bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace kvbench
