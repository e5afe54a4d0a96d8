// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/input_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/file_hint.hpp>
#include <kvbench/core/read_files.hpp>

namespace kvbench {
namespace {

[[noreturn]] void refuse_special(const std::string& path, std::string_view what) {
  throw Error("{}: is a pipe, a socket or a device, not {}; write its content to a file and name that.", path, what);
}

/// Reads up to `size` bytes; fewer where the file ends. -1 where the operating system reports a failure.
ssize_t read_up_to(int fd, char* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(fd, data + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

}  // namespace

InputDescriptor::InputDescriptor(const std::string& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
InputDescriptor::~InputDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint64_t regular_file_size(int descriptor, const std::string& path, std::string_view what) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw IoError("{}: cannot be inspected: {}.", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw Error("{}: is a folder; name {}.{}", path, what, file_hint(path));
  if (!S_ISREG(status.st_mode)) refuse_special(path, what);
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t regular_file_size(const InputDescriptor& file, const std::string& path, std::string_view what) {
  if (file.get() < 0 && errno == ENOENT) throw Error("{}: there is no such file; check the name.", path);
  if (file.get() < 0 && errno == ENXIO) refuse_special(path, what);  // sockets cannot be opened
  if (file.get() < 0) throw IoError("{}: cannot be opened: {}.", path, std::strerror(errno));
  return regular_file_size(file.get(), path, what);
}

std::string read_input_file(const std::string& path, std::uint64_t max_bytes, std::string_view what) {
  const InputDescriptor file(path);
  const std::uint64_t size = regular_file_size(file, path, what);
  remember_read(file.get());
  if (size > max_bytes)
    throw Error("{}: has {} bytes, more than the {} that {} may have.{}", path, size, max_bytes, what, file_hint(path));
  std::string text(size, '\0');
  const ssize_t got = read_up_to(file.get(), text.data(), text.size());
  if (got < 0) throw IoError("{}: cannot be read: {}.", path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

std::string begin_of_file(const std::string& path, std::size_t bytes) {
  const InputDescriptor file(path);
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  std::string begin(bytes, '\0');
  begin.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read_up_to(file.get(), begin.data(), bytes))));
  return begin;
}

bool file_begins_with(const std::string& path, std::string_view bytes) {
  return begin_of_file(path, bytes.size()) == bytes;
}

}  // namespace kvbench
