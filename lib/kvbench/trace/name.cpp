// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/name.hpp>

#include <cstdint>

#include <kvbench/core/error.hpp>

namespace kvbench::trace {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

/// Length in bytes of the UTF-8 character at the beginning of `text` (RFC 3629); 0 where there is none.
std::size_t utf8_character(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return 0;
    code = code << 6 | (byte_at(text, i) & 0x3FU);
  }
  const bool shortest = code >= (length == 4 ? 0x10000U : length == 3 ? 0x800U : 0x80U);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return shortest && !surrogate && code <= 0x10FFFF ? length : 0;
}

}  // namespace

void check_name(std::string_view name, const std::string& where) {
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_character(name.substr(i));
    if (length == 0) throw Error("{} is not UTF-8 text (byte {}); choose a name in UTF-8.", where, i);
    if (byte_at(name, i) < 0x20 || byte_at(name, i) == 0x7F) {
      throw Error("{} has a control character (byte {} is 0x{:02x}); choose a name without control characters.", where, i,
                  byte_at(name, i));
    }
    i += length;
  }
}

}  // namespace kvbench::trace
