// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/parameter_files.hpp>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include <kvbench/replay/kept/kept_file.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {

namespace {

std::vector<std::string> files_in(const std::string& params) {
  std::vector<std::string> files;
  std::istringstream settings(params);
  for (std::string setting; std::getline(settings, setting, ';');) {
    const std::string value = setting.substr(setting.find('=') + 1);
    std::error_code none;
    if (std::filesystem::is_regular_file(value, none)) files.push_back(value);
  }
  return files;
}

}  // namespace

std::vector<NamedFile> input_files(const replay::MethodChoice& method) {
  std::vector<NamedFile> files{{"the file of kept entries", replay::kept_file_path(method)}};
  for (const std::string& path : files_in(method.params.text()))
    files.push_back({fmt::format("a file that {} reads", method.info->name), path});
  return files;
}

std::string parameter_digests(const std::string& params) {
  std::string digests;
  for (const std::string& file : files_in(params)) digests += " " + trace::sha256_of_file(file);
  return digests;
}

}  // namespace kvbench::store
