// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/texts.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <kvbench/core/error.hpp>

namespace kvbench::llama {

std::string read_text(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw Error("{}: there is no such prompt file", path);
  if (std::filesystem::is_directory(path, error)) throw Error("{}: is a folder; a prompt must be a file", path);
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) throw IoError("{}: the prompt cannot be read", path);
  if (text.size() > INT32_MAX) throw Error("{}: is longer than 2 GiB; shorten it", path);
  return text;
}

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
