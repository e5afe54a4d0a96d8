// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/texts.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench::llama {

namespace {

void refuse_other_bytes(std::string_view text, const std::string& path) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character(text.substr(at));
    if (length == 0) {
      const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
      throw Error("{}:{}: byte {} of the file (0x{:02x}) is not UTF-8 text; convert the file to UTF-8, as with iconv",
                  path, line, at + 1, static_cast<unsigned char>(text[at]));
    }
    at += length;
  }
}

}  // namespace

std::string read_text(const std::string& path) {
  std::string text = read_input_file(path, INT32_MAX, "a text file");
  refuse_other_bytes(text, path);
  return text;
}

std::vector<std::int32_t> read_ids(const std::string& path, std::int32_t vocabulary_size) {
  const std::string text = read_input_file(path, INT32_MAX, "a file of token ids");
  std::vector<std::int32_t> ids;
  constexpr const char* space = " \t\r\n";
  for (auto begin = text.find_first_not_of(space); begin != text.npos; begin = text.find_first_not_of(space, begin)) {
    const auto end = std::min(text.find_first_of(space, begin), text.size());
    std::int32_t id = -1;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end || id < 0 || id >= vocabulary_size) {
      throw Error("{}: '{}' (item {}) is not a token id of this model; ids are whole numbers from 0 to {}", path,
                  text.substr(begin, std::min<std::size_t>(end - begin, 20)), ids.size() + 1, vocabulary_size - 1);
    }
    ids.push_back(id);
    begin = end;
  }
  return ids;
}

std::vector<std::int32_t> tokens_of_message(const Model& model, const std::string& text, const std::string& end,
                                            const std::vector<std::int32_t>& ids, const std::string& path) {
  if (!text.empty()) {
    if (!model.has_tokenizer())
      throw Error("{}: {} has no tokenizer; give lists of token ids as contents", path, model.path());
    return model.tokenize_piece(text + end);
  }
  for (const std::int32_t id : ids) {
    if (id >= model.vocabulary_size())
      throw Error("{}: {} is not a token id of this model; ids are whole numbers from 0 to {}", path, id,
                  model.vocabulary_size() - 1);
  }
  return ids;
}

}  // namespace kvbench::llama
