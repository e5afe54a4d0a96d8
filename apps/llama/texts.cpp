// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/texts.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>

namespace kvbench::llama {

std::string read_text(const std::string& path) { return read_input_file(path, INT32_MAX, "a text file"); }

std::vector<std::int32_t> read_ids(const std::string& path, std::int32_t vocabulary_size) {
  const std::string text = read_text(path);
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

}  // namespace kvbench::llama
