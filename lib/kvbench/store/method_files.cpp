// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/method_files.hpp>

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include <kvbench/methods/python_name.hpp>

namespace kvbench::store {

std::vector<NamedFile> files_of_method(const std::string& name, const std::string& params) {
  std::vector<NamedFile> files;
  const auto python = methods::parse_python_name(name);
  if (python && !python->file.empty()) files.push_back({"the file of a method in Python", python->file});
  std::istringstream settings(params);
  for (std::string setting; std::getline(settings, setting, ';');) {
    const std::string value = setting.substr(setting.find('=') + 1);
    std::error_code none;
    if (std::filesystem::is_regular_file(value, none))
      files.push_back({fmt::format("a file that {} reads", name), value});
  }
  return files;
}

}  // namespace kvbench::store
