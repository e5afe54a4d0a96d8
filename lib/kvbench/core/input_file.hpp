// SPDX-License-Identifier: Apache-2.0
// Files that a user names as input. Only regular files are read: a pipe can block for ever, and a device need not end.
// What a file is that stands where another kind was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvbench {

/// A file opened for reading, closed with the object. Opening does not wait for the writer of a pipe.
class InputDescriptor {
 public:
  explicit InputDescriptor(const std::string& path);
  InputDescriptor(const InputDescriptor&) = delete;
  InputDescriptor& operator=(const InputDescriptor&) = delete;
  ~InputDescriptor();
  /// Negative, with errno set, where the file cannot be opened.
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Bytes of an open file. Throws Error where it is a folder, pipe, socket or device. `what` is the expected content,
/// such as "a CSV file".
std::uint64_t regular_file_size(int descriptor, const std::string& path, std::string_view what);

/// The same for a file that was just opened. Throws Error where there is no such file, IoError where it could not be
/// opened.
std::uint64_t regular_file_size(const InputDescriptor& file, const std::string& path, std::string_view what);

/// The whole content. Throws Error where there is no such file, or where it is not a regular file of at most
/// `max_bytes`; IoError where it cannot be opened or read. `what` as above.
std::string read_input_file(const std::string& path, std::uint64_t max_bytes, std::string_view what);

/// The first `bytes` bytes of a regular file, or the whole of a shorter one; "" where it cannot be read.
std::string begin_of_file(const std::string& path, std::size_t bytes);

/// Whether `path` is a regular file that begins with `bytes`, such as the signature of its format; false where it
/// cannot be read.
bool file_begins_with(const std::string& path, std::string_view bytes);

/// The first bytes of a file of finished cells.
inline constexpr std::string_view cells_signature = "kvcells1";

/// What a reader expects in a file.
enum class Expected { other, table };

/// " It is a GGUF model: ..." with the command for it, by the first bytes and the name of the file or folder; "" where
/// neither is known, or where a table is expected and it is one.
std::string file_hint(const std::string& path, Expected expected = Expected::other);

}  // namespace kvbench
