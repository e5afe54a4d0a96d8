// SPDX-License-Identifier: Apache-2.0
// Files of prompts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <apps/llama/model.hpp>

namespace kvbench::llama {

/// The bytes of a text file. Throws Error where there is no such file or it is no file of UTF-8 text (with the line and
/// the byte), IoError where it cannot be read.
std::string read_text(const std::string& path);

/// Token ids separated by white space. Throws Error with the item that is not an id below `vocabulary_size`.
std::vector<std::int32_t> read_ids(const std::string& path, std::int32_t vocabulary_size);

/// The token ids of a message of the file `path`: of `text` followed by `end`, or else `ids`. Throws Error if there is
/// no tokenizer for a text, or an id is none of the model.
std::vector<std::int32_t> tokens_of_message(const Model& model, const std::string& text, const std::string& end,
                                            const std::vector<std::int32_t>& ids, const std::string& path);

}  // namespace kvbench::llama
