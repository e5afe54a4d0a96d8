// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/file_hint.hpp>

#include <filesystem>

#include <fmt/core.h>

#include <kvbench/core/input_file.hpp>

namespace kvbench {
namespace {

struct Signature {
  std::string_view bytes;
  const char* hint;  ///< {} is the file
};
constexpr Signature signatures[] = {
    {"GGUF", "a GGUF model: `kvdump {} --text FILE -o trace.h5` records a trace of it"},
    {cells_signature,
     "a file of cells: `kvbench merge` makes the tables of a sweep from it, `kvbench compare` compares its methods"},
    {"\x89HDF\r\n\x1a\n",
     "an HDF5 file: `kvbench info` and `kvbench replay` read traces, `kvbench compare` reads the raw results of --raw"},
};

/// The first line of a text.
std::string_view first_line(std::string_view text) { return text.substr(0, text.find_first_of("\r\n")); }

}  // namespace

std::string file_hint(const std::string& path) {
  std::error_code none;
  if (std::filesystem::exists(std::filesystem::path(path) / "config.json", none)) {
    return fmt::format(
        " It is a folder of a Hugging Face model: `kvbench-dump-hf --model {} --text FILE -o trace.h5` records a trace "
        "of it.",
        path);
  }
  constexpr std::size_t most = 4096;
  const std::string begin = begin_of_file(path, most);
  for (const Signature& signature : signatures) {
    if (begin.starts_with(signature.bytes))
      return fmt::format(" It is {}.", fmt::format(fmt::runtime(signature.hint), path));
  }
  const std::string_view header = first_line(begin);
  if (header.find(",method,") != header.npos || header.starts_with("method,") || header.find(",verdict") != header.npos)
    return " It is a table of results: `kvbench report` makes a page of it.";
  if (std::filesystem::path(path).extension() != ".toml") return "";
  if (begin.find("[[plans]]") != begin.npos)
    return fmt::format(" It is a plan: `kvbench replay` runs it, as --method plan:{}.", path);
  return " It is a sweep file: `kvbench sweep` runs it.";
}

}  // namespace kvbench
