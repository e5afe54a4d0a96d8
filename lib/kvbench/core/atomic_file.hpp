// SPDX-License-Identifier: Apache-2.0
// Atomic writes: a file is written under NAME.tmp.PID and gets its final name when it is complete and on disk.
#pragma once

#include <cstdint>
#include <string>

namespace kvbench {

class AtomicFile {
 public:
  /// Creates the empty temporary file in the folder of `path`; `suffix` distinguishes several of them. Throws IoError with
  /// cause and remedy.
  explicit AtomicFile(std::string path, const std::string& suffix = "");
  /// Removes the temporary file unless it was published.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& temporary() const { return temporary_; }
  /// Reserves disk space, so that a full disk is reported at the start and not after hours.
  void reserve(std::uint64_t bytes) const;
  /// Truncates the file but does not remove it, so that writes through an open handle still succeed.
  void empty() const noexcept;
  /// Syncs the file, renames it and syncs its folder.
  void publish();

 private:
  std::string path_, temporary_;
  bool published_ = false;
};

}  // namespace kvbench
