// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/atomic_file.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

std::string_view remedy(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space, or write to another disk";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that you may write to";
    case ENOENT:
      return "create the folder first";
    case EISDIR:
      return "name a file, not a folder";
    default:
      return "check the disk";
  }
}

[[noreturn]] void fail_with(std::string_view what, const std::string& path, int code) {
  throw IoError("cannot {} '{}': {}; {}", what, path, std::strerror(code), remedy(code));
}

void sync_path(const std::string& path, int flags, const std::string& reported) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail_with("sync", reported, errno);
  const int failed = ::fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;  // EINVAL: a file system without sync
  ::close(descriptor);
  if (failed != 0) fail_with("sync", reported, failed);
}

}  // namespace

std::string temporary_name(const std::string& path) { return fmt::format("{}.tmp.{}", path, ::getpid()); }

void publish_file(const std::string& temporary, const std::string& path) {
  sync_path(temporary, O_RDONLY, path);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail_with("rename the finished file to", path, errno);
  const auto folder = std::filesystem::path(path).parent_path();
  sync_path(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY, path);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("write", EISDIR);
  const bool direct = exists && !S_ISREG(status.st_mode);
  if (!direct) temporary_ = temporary_name(path_);
  descriptor_ = direct ? ::open(path_.c_str(), O_WRONLY | O_CLOEXEC)
                       : ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    const int code = errno;
    temporary_.clear();
    fail("write", code);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(std::string_view what, int code) const { fail_with(what, path_, code); }

void AtomicFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("write", errno);
  if (temporary_.empty()) return;
  publish_file(temporary_, path_);
  temporary_.clear();
}

}  // namespace kvbench
