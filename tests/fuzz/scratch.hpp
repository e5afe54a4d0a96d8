// SPDX-License-Identifier: Apache-2.0
// A file with the bytes of the input, for code that opens a path.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace kvbench::fuzz {

/// Its path, in memory where the system has such a folder.
inline const std::string& scratch() {
  static const std::string path = [] {
    const std::string folder =
        std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    return folder + "/kvbench-fuzz." + std::to_string(::getpid());
  }();
  return path;
}

/// Replaces the file; it is removed with this object.
class ScratchFile {
 public:
  ScratchFile(const void* data, std::size_t size) {
    const int fd = ::open(scratch().c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
    ::close(fd);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { ::unlink(scratch().c_str()); }
};

}  // namespace kvbench::fuzz
