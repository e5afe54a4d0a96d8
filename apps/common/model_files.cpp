// SPDX-License-Identifier: Apache-2.0
#include <apps/common/model_files.hpp>

#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include <kvbench/trace/sha256.hpp>

namespace kvbench::app {

std::vector<std::string> model_files(const std::string& path) {
  static const std::regex split("([\\s\\S]*)-([0-9]{5})-of-([0-9]{5})\\.gguf");  // llama_split_path()
  std::smatch parts;
  if (!std::regex_match(path, parts, split)) return {path};
  std::vector<std::string> found;
  const int count = std::stoi(parts[3]);
  for (int part = 1; part <= count; ++part) {
    const std::string file = fmt::format("{}-{:05}-of-{:05}.gguf", parts[1].str(), part, count);
    std::error_code none;
    if (file == path || std::filesystem::exists(file, none)) found.push_back(file);
  }
  return found.empty() ? std::vector{path} : found;
}

std::string model_sha256(const std::string& path) {
  const std::vector<std::string> files = model_files(path);
  if (files.size() == 1) return trace::sha256_of_file(files.front());
  trace::Sha256 lines;
  for (const std::string& file : files) lines.add(trace::sha256_of_file(file) + "\n");
  return lines.hex();
}

}  // namespace kvbench::app
