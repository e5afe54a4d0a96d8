// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/utf8.hpp>

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace kvbench {

std::size_t utf8_character(std::string_view text) {
  const auto byte_at = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte_at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(i) & 0xC0U) != 0x80) return 0;
    code = code << 6 | (byte_at(i) & 0x3FU);
  }
  const bool shortest = code >= (length == 4 ? 0x10000U : length == 3 ? 0x800U : 0x80U);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return shortest && !surrogate && code <= 0x10FFFF ? length : 0;
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_character(text.substr(i));
    const std::string_view character = text.substr(i, std::max<std::size_t>(1, length));
    if (length > 0 && (!is_control(character) || kept.find(character) != std::string_view::npos))
      out += character;
    else
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    i += character.size();
  }
  return out;
}

}  // namespace kvbench
