// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/utf8.hpp>

#include <cstdint>

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

}  // namespace kvbench
