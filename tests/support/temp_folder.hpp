// SPDX-License-Identifier: Apache-2.0
// Folders and files that are removed at the end of a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <stdlib.h>

namespace kvbench::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvbench-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  std::ptrdiff_t files() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }
  /// The path of a file with this text.
  std::string file(const std::string& text, const std::string& name = "text") const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

class TextFile {
 public:
  explicit TextFile(const std::string& text) : path_(folder_.file(text)) {}
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
};

}  // namespace kvbench::testing
