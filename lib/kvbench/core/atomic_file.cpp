// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/atomic_file.hpp>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>

namespace kvbench {
namespace {

void sync(const std::string& path, const std::string& name, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) throw_write_error(name, "cannot be synced", errno);
  const int cause = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some network file systems cannot sync a folder; the bytes of the file itself are synced in any case.
  if (cause != 0 && !((flags & O_DIRECTORY) != 0 && cause == EINVAL))
    throw_write_error(name, "cannot be synced", cause);
}

/// The temporary files of this process. Never destroyed: exit_without_outputs() may run while the program ends.
struct Pending {
  std::mutex mutex;  ///< held while a file is published
  std::set<std::string> files;
};
Pending& pending() {
  static auto* files = new Pending;
  return *files;
}

/// What the names of this host's temporary files for `target` begin with. A process id means nothing on another host,
/// with which the folder may be shared.
std::string temporary_prefix(const std::string& target) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("{}.tmp.{}.", target, host[0] == '\0' ? "host" : host.data());
}

/// Removes the files that begin with `prefix`, a path, and were left by processes that have ended.
void remove_left_files(const std::string& prefix) {
  const std::filesystem::path path(prefix);
  const std::string start = path.filename().string();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    pid_t process = 0;
    if (!name.starts_with(start)) continue;
    std::from_chars(name.data() + start.size(), name.data() + name.size(), process);
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) ::unlink(entry.path().c_str());
  }
}

/// Gives `temporary` owner and mode of the file that it will replace. What the system does not permit is left as it is.
void copy_owner_and_mode(const std::string& target, const std::string& temporary) {
  struct stat old {};
  if (::stat(target.c_str(), &old) != 0) return;
  [[maybe_unused]] const int owned = ::chown(temporary.c_str(), old.st_uid, old.st_gid);
  ::chmod(temporary.c_str(), old.st_mode & 0777);
}

}  // namespace

void throw_write_error(const std::string& path, const std::string& doing, int cause) {
  const char* remedy = "check the disk";
  if (cause == ENOSPC || cause == EDQUOT) remedy = "free some space or write to another disk";
  if (cause == EFBIG) remedy = "raise the file size limit (ulimit -f) or write to another disk";
  if (cause == EACCES || cause == EPERM || cause == EROFS) remedy = "choose a folder that you may write to";
  if (cause == ENOENT || cause == ENOTDIR) remedy = "create the folder first";
  if (cause == EISDIR || cause == ENOTEMPTY || cause == EEXIST) remedy = "choose another file name";
  if (cause == ENAMETOOLONG) remedy = "choose a shorter file name";
  throw IoError("{}: {}: {}; {}.", path, doing, std::strerror(cause), remedy);
}

AtomicFile::AtomicFile(std::string path, const std::string& suffix) : path_(std::move(path)) {
  check_replaceable(path_);
  check_not_read(path_);
  target_ = target_of(path_);
  const std::string prefix = temporary_prefix(target_);
  remove_left_files(prefix);
  temporary_ = fmt::format("{}{}{}", prefix, ::getpid(), suffix);
  const std::lock_guard lock(pending().mutex);
  pending().files.insert(temporary_);
  ::unlink(temporary_.c_str());  // left by a killed process with the same id
  const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int cause = errno;
    pending().files.erase(temporary_);
    throw_write_error(path_, "cannot be written", cause);
  }
  ::close(fd);
}

AtomicFile::~AtomicFile() {
  const std::lock_guard lock(pending().mutex);
  if (!published_) ::unlink(temporary_.c_str());
  pending().files.erase(temporary_);
}

void AtomicFile::reserve(std::uint64_t bytes) const {
  const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) throw_write_error(path_, "cannot be written", errno);
  const int cause = ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  ::close(fd);
  if (cause == ENOSPC || cause == EDQUOT ||
      cause == EFBIG) {  // other causes: the file system does not support reserving
    throw_write_error(path_, fmt::format("needs {} bytes", bytes), cause);
  }
}

void AtomicFile::empty() const noexcept {
  if (::truncate(temporary_.c_str(), 0) != 0) return;  // unlink() follows and suffices for most file systems
}

void AtomicFile::publish() {
  check_not_read(target_);
  sync(temporary_, path_, O_RDONLY);
  const std::lock_guard lock(pending().mutex);
  copy_owner_and_mode(target_, temporary_);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw_write_error(path_, "cannot be given its final name", errno);
  published_ = true;
  pending().files.erase(temporary_);
  sync(std::filesystem::path(target_).parent_path().string(), path_, O_RDONLY | O_DIRECTORY);
}

void exit_without_outputs(int code) noexcept {
  pending().mutex.lock();  // never unlocked: nothing is published any more
  for (const std::string& file : pending().files) ::unlink(file.c_str());
  ::_exit(code);
}

}  // namespace kvbench
