// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/guard/untrusted_file.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>

namespace kvbench::trace {
namespace {

using Head = std::array<unsigned char, 64>;

std::uint64_t little_endian(const Head& head, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) value |= std::uint64_t{head[at + i]} << (8 * i);
  return value;
}

constexpr std::uint64_t undefined_address = std::numeric_limits<std::uint64_t>::max();

void check_head(const Head& head, std::uint64_t length, const std::string& path) {
  const unsigned version = head[8];
  if (version > 3)
    throw Error("{}: superblock version {} is unknown; the file is damaged or from a newer HDF5.", path, version);
  const bool old = version < 2;
  const std::size_t sizes = old ? 13 : 9;
  if (head[sizes] != 8 || head[sizes + 1] != 8)
    throw Error("{}: offsets are not 8 bytes wide; the file is damaged.", path);
  const std::size_t base = version == 0 ? 24 : version == 1 ? 28 : 12;
  if (little_endian(head, base) != 0)
    throw Error("{}: the HDF5 data do not begin at byte 0; copy them with h5repack.", path);
  if (old && little_endian(head, base + 24) != undefined_address) {
    throw Error("{}: the data are stored in several files; copy them into one with h5repack.", path);
  }
  if (version == 3 && (head[11] & 1U) != 0) {
    throw Error("{}: the writer has not closed the file; wait until it has finished, or write the file again.", path);
  }
  const std::uint64_t end = little_endian(head, base + 16);
  if (end > length) throw Error("{}: truncated: it has {} of {} bytes; copy or write it again.", path, length, end);
}

FileState state_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .length = static_cast<std::uint64_t>(status.st_size),
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

/// HDF5 locks the files that it writes, and its variable HDF5_USE_FILE_LOCKING disables the locks. File systems without
/// locks give other errors than EWOULDBLOCK.
void check_lock(int file, const std::string& path) {
  const char* const use = std::getenv("HDF5_USE_FILE_LOCKING");
  if (use != nullptr && (std::string_view(use) == "FALSE" || std::string_view(use) == "0")) return;
  if (::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(
        "{}: another program holds the file open for writing; wait until it has finished, or close the file there.",
        path);
}

[[noreturn]] void run_as_child(const std::function<void()>& read, int seconds) {
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int null = ::open("/dev/null", O_WRONLY);  // a C library that detects heap corruption prints before it aborts
  if (null >= 0) ::dup2(null, STDERR_FILENO);
  const rlimit busy = {static_cast<rlim_t>(seconds), static_cast<rlim_t>(seconds) + 1};
  ::setrlimit(RLIMIT_CPU, &busy);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted program leaves no child
  try {
    read();
  } catch (...) {
  }
  ::_exit(0);
}

}  // namespace

std::optional<FileState> file_state(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return state_of(status);
}

FileState check_superblock(const std::string& path) {
  const InputDescriptor file(path);
  if (file.get() < 0) {
    if (errno == ENOENT) throw Error("{}: no such file; check the name.", path);
    if (errno == EACCES) throw Error("{}: permission denied; make it readable with chmod +r.", path);
    throw Error("{}: cannot be opened: {}.", path, std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw Error("{}: cannot be inspected: {}.", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw Error("{}: is a directory; name an HDF5 file in it.{}", path, file_hint(path));
  if (!S_ISREG(status.st_mode)) throw Error("{}: is not a regular file; HDF5 needs random access.", path);
  check_lock(file.get(), path);
  Head head{};
  const ssize_t got = ::pread(file.get(), head.data(), head.size(), 0);
  if (got < 0) throw Error("{}: cannot be read: {}.", path, std::strerror(errno));
  if (got == 0) throw Error("{}: the file is empty.", path);
  const std::size_t compared = std::min(hdf5_signature.size(), static_cast<std::size_t>(got));
  if (std::memcmp(head.data(), hdf5_signature.data(), compared) != 0)
    throw Error("{}: is not an HDF5 file.{}", path, file_hint(path));
  const FileState state = state_of(status);
  if (static_cast<std::size_t>(got) < head.size())
    throw Error("{}: truncated after {} bytes; copy or write it again.", path, state.length);
  check_head(head, state.length, path);
  return state;
}

void try_in_child(const std::string& path, const std::function<void()>& read, int seconds) {
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) run_as_child(read, seconds);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    throw Error("{}: its metadata keep a processor busy for {} s: the file is damaged; copy or write it again.", path,
                seconds);
  throw Error("{}: the HDF5 library fails on its metadata: the file is damaged; copy or write it again.", path);
}

}  // namespace kvbench::trace
