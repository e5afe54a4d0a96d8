// SPDX-License-Identifier: Apache-2.0
// Checks of a file before the HDF5 library reads it in this process. HDF5 1.10 reads and writes out of bounds on some
// damaged or hostile metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace kvbench::trace {

/// The first bytes of an HDF5 file.
inline constexpr std::string_view hdf5_signature = "\x89HDF\r\n\x1a\n";

/// Tells a file from another one, and from itself after a change.
struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t length = 0;  ///< in bytes
  std::int64_t seconds = 0;  ///< of the last change of its contents
  std::int64_t nanoseconds = 0;

  bool operator==(const FileState&) const = default;
};

/// The present state of the file `path`; absent where there is none.
std::optional<FileState> file_state(const std::string& path);

/// The state of the HDF5 file `path`. Throws Error where it is missing, unreadable, not a regular file, locked by a
/// program that writes it, not HDF5, truncated, still being written, or has features that kvbench does not read (HDF5
/// file format specification 3.0, section II).
FileState check_superblock(const std::string& path);

/// Runs `read` in a child process first, which damaged metadata may crash without harm. Throws Error with `path` where
/// the child is killed by a signal or takes `seconds` of processor time, so that a good file may wait for a busy
/// machine. Exceptions of `read` in the child are ignored, because the caller runs it again. Does nothing where no
/// child can be created.
void try_in_child(const std::string& path, const std::function<void()>& read, int seconds = 60);

}  // namespace kvbench::trace
