// SPDX-License-Identifier: Apache-2.0
// Records by key in a file of frames: what a long run has finished, so that it can continue after it was interrupted.
#pragma once

#include <chrono>
#include <map>
#include <stdexcept>

#include <kvbench/core/error.hpp>
#include <kvbench/store/frame_file.hpp>

namespace kvbench::store {

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
