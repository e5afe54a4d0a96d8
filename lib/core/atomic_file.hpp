// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kvbench {

/// A file that appears whole or not at all: written as NAME.tmp.PID beside its final name, renamed by commit(). Opening it
/// early finds out early that the place is not writable. Devices and pipes are written directly. Destroyed without commit(), it
/// leaves nothing. Every failure throws IoError (exit 3) with file, cause and remedy.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  void commit();  ///< syncs the file, renames it, syncs the folder

 private:
  [[noreturn]] void fail(std::string_view what, int code) const;

  std::string path_, temporary_;  // temporary_ is empty where the file is written directly
  int descriptor_ = -1;
};

/// Gives `temporary` its final name: syncs its bytes, renames it, syncs the folder. Throws IoError; `temporary` is left then.
void publish_file(const std::string& temporary, const std::string& path);

/// path.tmp.PID
std::string temporary_name(const std::string& path);

}  // namespace kvbench
