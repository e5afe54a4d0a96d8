// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/input_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>

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

namespace {

struct Signature {
  std::string_view bytes;
  const char* hint;  ///< {} is the file
};
constexpr Signature signatures[] = {
    {"GGUF", "a GGUF model: `kvdump {} --text FILE -o trace.h5` records a trace of it"},
    {cells_signature,
     "a file of cells: `kvbench merge` makes the tables of a sweep from it, `kvbench compare` compares its methods"},
    {"\x89HDF\r\n\x1a\n",
     "an HDF5 file: `kvbench info` and `kvbench replay` read traces, `kvbench compare` reads the raw results of --raw"},
};

/// The first line of a text.
std::string_view first_line(std::string_view text) { return text.substr(0, text.find_first_of("\r\n")); }

}  // namespace

std::string file_hint(const std::string& path, Expected expected) {
  std::error_code none;
  if (std::filesystem::exists(std::filesystem::path(path) / "config.json", none)) {
    return fmt::format(
        " It is a folder of a Hugging Face model: `kvbench-dump-hf --model {} --text FILE -o trace.h5` records a trace "
        "of it.",
        path);
  }
  constexpr std::size_t most = 4096;
  const std::string begin = begin_of_file(path, most);
  for (const Signature& signature : signatures) {
    if (begin.starts_with(signature.bytes))
      return fmt::format(" It is {}.", fmt::format(fmt::runtime(signature.hint), path));
  }
  if (begin.empty()) return "";  // also a folder, whatever its name
  const std::string_view header = first_line(begin);
  if (header.find(",method,") != header.npos || header.starts_with("method,") || header.find(",verdict") != header.npos)
    return expected == Expected::table ? "" : " It is a table of results: `kvbench report` makes a page of it.";
  if (std::filesystem::path(path).extension() != ".toml") return "";
  if (begin.find("[[plans]]") != begin.npos)
    return fmt::format(" It is a plan: `kvbench replay` runs it, as --method plan:{}.", path);
  return " It is a sweep file: `kvbench sweep` runs it.";
}

}  // namespace kvbench
