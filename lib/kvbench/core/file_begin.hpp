// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <string_view>

namespace kvbench {

/// Whether the file `path` begins with `bytes`, such as the signature of its format; false where it cannot be read.
inline bool file_begins_with(const std::string& path, std::string_view bytes) {
  std::string begin(bytes.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == bytes;
}

}  // namespace kvbench
