// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/parameter_files.hpp>

#include <filesystem>
#include <sstream>

#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {

std::string parameter_files(const std::string& params) {
  std::string digests;
  std::istringstream settings(params);
  for (std::string setting; std::getline(settings, setting, ';');) {
    const std::string value = setting.substr(setting.find('=') + 1);
    std::error_code none;
    if (std::filesystem::is_regular_file(value, none)) digests += " " + trace::sha256_of_file(value);
  }
  return digests;
}

}  // namespace kvbench::store
