// SPDX-License-Identifier: Apache-2.0
// The file in which a long run keeps what it has finished, so that it can continue after it was interrupted.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>

namespace kvbench::store {

/// A frame in the file.
struct Frame {
  std::uint32_t kind = 0;
  std::string key;           ///< 64 characters
  std::uint64_t offset = 0;  ///< of its payload
  std::uint64_t length = 0;
};

/// Frames are appended. Each has a checksum: whenever a process, a machine or a disk fails, all complete frames can be
/// read, and an incomplete one is recognised.
class FrameFile {
 public:
  static constexpr std::string_view signature = cells_signature;  ///< the first bytes of the file

  enum class Mode {
    append,     ///< continues after the last complete frame; created where it does not exist
    overwrite,  ///< discards the frames of the file; created where it does not exist
    read,
    scratch  ///< has no name: the system removes it when the process ends, in whatever way
  };

  /// Opens the file and checks every frame. Throws Error where it does not exist (read), has another format, or is
  /// being written by another process; IoError where the operating system reports a failure.
  FrameFile(std::string path, Mode mode);
  ~FrameFile();  ///< removes a file that it may write and that holds nothing
  FrameFile(FrameFile&& other) noexcept;
  FrameFile& operator=(FrameFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Frame>& frames() const { return frames_; }
  std::uint64_t torn_bytes() const { return torn_; }  ///< that belonged to no intact frame when the file was opened

  /// Appends a frame atomically; where that fails, throws IoError and leaves the file unchanged.
  void append(std::uint32_t kind, const std::string& key, std::string_view payload);
  std::string read(const Frame& frame) const;
  void sync() const;  ///< returns when everything appended is on the disk
  /// Removes the file, while its lock keeps other processes from continuing it.
  void remove() const;

 private:
  void open(Mode mode);
  void open_locked();
  void scan();
  [[noreturn]] void fail(const char* doing, int cause) const;

  std::string path_;
  int fd_ = -1;
  bool locked_ = false;  ///< opened for writing under this name
  std::uint64_t end_ = 0, torn_ = 0;
  std::vector<Frame> frames_;
};

/// Frames by their keys.
class RecordFile {
 public:
  /// Throws as FrameFile does.
  RecordFile(std::string path, FrameFile::Mode mode);

  const std::string& path() const { return file_.path(); }
  std::uint64_t torn_bytes() const { return file_.torn_bytes(); }
  /// All frames that were in the file when it was opened, and those appended since; of equal keys the last one counts.
  const std::vector<Frame>& frames() const { return file_.frames(); }

  bool has(const std::string& key) const { return records_.contains(key); }
  /// Throws as FrameFile::append does. A killed process loses no record, a machine failure at most those of one second.
  void append(std::uint32_t kind, const std::string& key, std::string_view payload);
  /// decode(bytes) of the record with this key, which the file has. Throws Error where it is of another kind, or where
  /// `decode` throws std::out_of_range.
  template <class F>
  auto decoded(const std::string& key, std::uint32_t kind, F decode) const {
    try {
      const Frame& frame = records_.at(key);
      if (frame.kind != kind) throw std::out_of_range("of another kind");
      return decode(file_.read(frame));
    } catch (const std::out_of_range& fault) {
      throw Error("{}: holds cells that this version of kvbench cannot read ({}); compute them again", path(),
                  fault.what());
    }
  }
  void sync() const { file_.sync(); }
  void remove() const { file_.remove(); }  ///< as FrameFile does

 private:
  FrameFile file_;
  std::map<std::string, Frame> records_;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

}  // namespace kvbench::store
