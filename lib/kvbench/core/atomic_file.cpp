// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/atomic_file.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

[[noreturn]] void fail(const std::string& path, const char* doing, int cause) {
  const char* remedy = "check the disk";
  if (cause == ENOSPC || cause == EDQUOT) remedy = "free some space or write to another disk";
  if (cause == EFBIG) remedy = "raise the file size limit (ulimit -f) or write to another disk";
  if (cause == EACCES || cause == EPERM || cause == EROFS) remedy = "choose a folder that you may write to";
  if (cause == ENOENT || cause == ENOTDIR) remedy = "create the folder first";
  if (cause == EISDIR || cause == ENOTEMPTY || cause == EEXIST) remedy = "choose another file name";
  throw IoError("{}: {}: {}; {}.", path, doing, std::strerror(cause), remedy);
}

void sync(const std::string& path, const std::string& name, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) fail(name, "cannot be synced", errno);
  const int cause = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some network file systems cannot sync a folder; the bytes of the file itself are synced in any case.
  if (cause != 0 && !((flags & O_DIRECTORY) != 0 && cause == EINVAL)) fail(name, "cannot be synced", cause);
}

}  // namespace

AtomicFile::AtomicFile(std::string path, const std::string& suffix)
    : path_(std::move(path)), temporary_(fmt::format("{}.tmp.{}{}", path_, ::getpid(), suffix)) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) fail(path_, "cannot be written", EISDIR);
  ::unlink(temporary_.c_str());  // left by a killed process with the same id
  const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) fail(path_, "cannot be written", errno);
  ::close(fd);
}

AtomicFile::~AtomicFile() {
  if (!published_) ::unlink(temporary_.c_str());
}

void AtomicFile::reserve(std::uint64_t bytes) const {
  const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(path_, "cannot be written", errno);
  const int cause = ::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  ::close(fd);
  if (cause == ENOSPC || cause == EDQUOT || cause == EFBIG) {  // other causes: the file system does not support reserving
    fail(path_, fmt::format("needs {} bytes", bytes).c_str(), cause);
  }
}

void AtomicFile::empty() const noexcept {
  if (::truncate(temporary_.c_str(), 0) != 0) return;  // unlink() follows and suffices for most file systems
}

void AtomicFile::publish() {
  sync(temporary_, path_, O_RDONLY);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(path_, "cannot be given its final name", errno);
  published_ = true;
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  sync(folder.empty() ? "." : folder, path_, O_RDONLY | O_DIRECTORY);
}

}  // namespace kvbench
