// SPDX-License-Identifier: Apache-2.0
// The one way to open an HDF5 file from elsewhere: a trace, raw results, entries of a user.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/guard/input_object.hpp>
#include <kvbench/trace/guard/untrusted_file.hpp>

namespace kvbench::trace {

/// An HDF5 file that is open for reading. Its superblock was checked, `examine` was run in a child process first, the
/// bytes of each dataset are checked when it is opened (h5::InputObject::dataset()), and a change of the file is an error.
/// Thread-safe (reads are serialised).
class InputFile {
 public:
  /// Opens `path` and calls examine(root), which should open everything that is read later. `content`: what the file
  /// should hold, such as "a trace"; `page`: the page of the documentation. Throws Error with file and object where the
  /// file is missing, damaged, locked by another program, or stored in several files; and what `examine` throws.
  InputFile(std::string path, const char* content, const char* page,
            const std::function<void(const h5::InputObject& root)>& examine);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }

  /// Returns read(root). Throws IoError where reading fails or the file has changed since it was opened.
  template <class F>
  auto read(F read) const {
    const h5::Session session;
    begin();
    try {
      auto result = read(*root_);
      check_unchanged();
      return result;
    } catch (const h5::Failure& failure) {
      check_unchanged();
      throw IoError("{}. Check the disk, or write the file again.", failure.what());
    } catch (const Error&) {
      check_unchanged();
      throw;
    }
  }

  /// Throws IoError where the file at path() is not the one that was opened, or has changed since.
  void check_unchanged() const;

 private:
  void begin() const { *claims_ = {.length = opened_.length, .stored = 0, .whole = 0, .opened = {}}; }

  std::string path_;
  FileState opened_;
  std::shared_ptr<h5::Claims> claims_;
  std::unique_ptr<h5::InputObject> root_;
};

}  // namespace kvbench::trace
