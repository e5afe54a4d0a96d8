// SPDX-License-Identifier: Apache-2.0
// Files of prompts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvbench::llama {

/// The bytes of a text file. Throws Error where there is no such file or it is no file of UTF-8 text (with the line and
/// the byte), IoError where it cannot be read.
std::string read_text(const std::string& path);

/// Token ids separated by white space. Throws Error with the item that is not an id below `vocabulary_size`.
std::vector<std::int32_t> read_ids(const std::string& path, std::int32_t vocabulary_size);

}  // namespace kvbench::llama
