// SPDX-License-Identifier: Apache-2.0
// All or nothing: a file that grows under NAME.tmp.PID and takes its final name when it is complete and on disk.
#pragma once

#include <cstdint>
#include <string>

namespace kvbench {

class AtomicFile {
 public:
  /// Makes the empty temporary file beside `path`; `suffix` tells several of them apart. Throws IoError with cause and remedy.
  explicit AtomicFile(std::string path, const std::string& suffix = "");
  /// Removes what was not published.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& temporary() const { return temporary_; }
  /// Asks the file system for the space now, so that a full disk shows at the start and not after hours.
  void reserve(std::uint64_t bytes) const;
  /// Frees the space but keeps the file: whoever still has it open can finish writing.
  void empty() const noexcept;
  /// Syncs the file, renames it and syncs the folder.
  void publish();

 private:
  std::string path_, temporary_;
  bool published_ = false;
};

}  // namespace kvbench
