// SPDX-License-Identifier: Apache-2.0
// A file that only grows: each frame carries its checksum, so whatever moment a process, a machine or a disk ends at, all
// frames before it can be read, and the torn rest is recognised.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvbench::sweep {

/// Where a frame stands in the file.
struct Frame {
  std::uint32_t kind = 0;
  std::string key;           ///< 64 characters
  std::uint64_t offset = 0;  ///< of its payload
  std::uint64_t length = 0;
};

class FrameFile {
 public:
  static constexpr std::string_view signature = "kvcells1";  ///< how the file begins

  enum class Mode {
    create,  ///< must not exist
    append,  ///< goes on after the last whole frame; made where there is none
    read,
    scratch  ///< no name: the system frees it however the process ends
  };

  /// Opens the file and checks every frame. Throws Error where it is missing (read), is there (create), is no such file, or is
  /// being written by another process; IoError where the machine fails.
  FrameFile(std::string path, Mode mode);
  ~FrameFile();
  FrameFile(FrameFile&& other) noexcept;
  FrameFile& operator=(FrameFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Frame>& frames() const { return frames_; }
  std::uint64_t torn_bytes() const { return torn_; }  ///< outside whole frames when it was opened

  /// Adds a frame whole, or throws IoError and leaves the file as it was.
  void append(std::uint32_t kind, const std::string& key, std::string_view payload);
  std::string read(const Frame& frame) const;
  void sync() const;  ///< everything appended is on the disk when it returns

 private:
  void open(Mode mode);
  void scan();
  [[noreturn]] void fail(const char* doing, int cause) const;

  std::string path_;
  int fd_ = -1;
  std::uint64_t end_ = 0, torn_ = 0;
  std::vector<Frame> frames_;
};

}  // namespace kvbench::sweep
