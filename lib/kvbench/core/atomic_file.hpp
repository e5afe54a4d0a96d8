// SPDX-License-Identifier: Apache-2.0
// Atomic writes: a file is written under NAME.tmp.HOST.PID and gets its final name when it is complete and on disk.
#pragma once

#include <cstdint>
#include <string>

namespace kvbench {

class AtomicFile {
 public:
  /// Creates the empty temporary file in the folder of the file that `path` names (through symbolic links); `suffix`
  /// distinguishes several of them. Removes temporary files for the same path that processes of this host left when
  /// they were killed. Throws IoError with cause and remedy, also where `path` names a device, pipe or folder.
  explicit AtomicFile(std::string path, const std::string& suffix = "");
  /// Removes the temporary file unless it was published.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }  ///< as given
  const std::string& temporary() const { return temporary_; }
  /// Reserves disk space, so that a full disk is reported at the start and not after hours.
  void reserve(std::uint64_t bytes) const;
  /// Truncates the file but does not remove it, so that writes through an open handle still succeed.
  void empty() const noexcept;
  /// Syncs the file, gives it owner and mode of the file that it replaces, renames it and syncs its folder.
  void publish();

 private:
  std::string path_, target_, temporary_;
  bool published_ = false;
};

/// Throws IoError: "PATH: DOING: cause; remedy." for an errno of a call that writes or creates files.
[[noreturn]] void throw_write_error(const std::string& path, const std::string& doing, int cause);

/// Removes the temporary files of all AtomicFiles that have not been published, and ends the process without
/// destructors. Waits for a publish() that runs in another thread.
[[noreturn]] void exit_without_outputs(int code) noexcept;

}  // namespace kvbench
