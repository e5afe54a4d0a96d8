// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/frame_file.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/trace/sha256.hpp>

namespace kvbench::store {
namespace {

constexpr std::string_view signature = FrameFile::signature;
constexpr std::size_t digest_size = 64;

/// Precedes each payload in the file.
struct Header {
  std::uint64_t length = 0;
  std::uint32_t kind = 0, reserved = 0;
  std::array<char, digest_size> key{}, checksum{};
};
static_assert(sizeof(Header) == 16 + 2 * digest_size);

std::array<char, digest_size> to_array(const std::string& hex) {
  std::array<char, digest_size> out{};
  std::copy_n(hex.begin(), std::min(hex.size(), out.size()), out.begin());
  return out;
}

/// The part of the header that the checksum covers: all but the checksum.
std::string_view summed(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header - digest_size};
}

std::size_t read_some(int fd, void* data, std::size_t size, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, static_cast<char*>(data) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

/// The checksum of a frame in the file, read in parts: a damaged length must not decide how much memory is allocated.
/// Nothing where it cannot be read.
std::optional<std::array<char, digest_size>> checksum_of(int fd, const Header& header, std::uint64_t payload) {
  constexpr std::uint64_t part = 1 << 20;
  trace::Sha256 sum;
  sum.add(summed(header));
  std::string bytes;
  for (std::uint64_t done = 0; done < header.length; done += bytes.size()) {
    bytes.resize(std::min(part, header.length - done));
    if (read_some(fd, bytes.data(), bytes.size(), payload + done) != bytes.size()) return std::nullopt;
    sum.add(bytes);
  }
  return to_array(sum.hex());
}

}  // namespace

FrameFile::FrameFile(std::string path, Mode mode) : path_(std::move(path)) {
  try {
    open(mode);
    scan();
    if (mode == Mode::overwrite) end_ = torn_ = 0, frames_.clear();
    // Frames are appended after the last complete one.
    if (mode != Mode::read && ::ftruncate(fd_, static_cast<off_t>(end_)) != 0) fail("cannot be truncated", errno);
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

FrameFile::FrameFile(FrameFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      locked_(other.locked_),
      end_(other.end_),
      torn_(other.torn_),
      frames_(std::move(other.frames_)) {}

FrameFile::~FrameFile() {
  if (fd_ < 0) return;
  if (locked_ && end_ == 0) remove();
  ::close(fd_);
}

void FrameFile::fail(const char* doing, int cause) const {
  const bool full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
  throw IoError("{}: {}: {}; {}.", path_, doing, std::strerror(cause),
                full ? "free some space and continue with `resume`; the cells finished so far are kept"
                     : "check the folder and the disk");
}

void FrameFile::open(Mode mode) {
  if (mode == Mode::scratch) {
    path_ = (temporary_folder() / "kvbench-cells-XXXXXX").string();
    fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) fail("cannot be written", errno);
    ::unlink(path_.c_str());
    return;
  }
  if (mode != Mode::read) return open_locked();
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0 && errno == ENOENT) throw Error("{}: there is no such file; check the name.", path_);
  if (fd_ < 0) fail("cannot be read", errno);
  regular_file_size(fd_, path_, "a file of cells");
  remember_read(fd_);
}

void FrameFile::open_locked() {
  path_ = target_of(path_);
  const auto replaced = [&] {  // by the run that held the lock before
    struct stat opened {};
    struct stat named {};
    return ::fstat(fd_, &opened) == 0 && (::stat(path_.c_str(), &named) != 0 || opened.st_ino != named.st_ino);
  };
  do {
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd_ < 0) fail("cannot be written", errno);
    regular_file_size(fd_, path_, "a file of cells");
    // A file system without locks returns another error, which is ignored: the lock is a precaution.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw Error("{}: another run is writing this file; wait for it to finish, or name another file", path_);
  } while (replaced());
  locked_ = true;
  remember_read(fd_);
}

void FrameFile::remove() const {
  if (locked_) ::unlink(path_.c_str());
}

void FrameFile::scan() {
  const off_t size_now = ::lseek(fd_, 0, SEEK_END);
  if (size_now < 0) fail("cannot be read", errno);
  const auto size = static_cast<std::uint64_t>(size_now);
  std::array<char, signature.size()> start{};
  const std::size_t got = read_some(fd_, start.data(), start.size(), 0);
  if (std::string_view(start.data(), got) != signature.substr(0, got)) {
    throw Error("{}: is not a file of cells; name one that `kvbench sweep` or `kvbench eval` wrote.{}", path_,
                file_hint(path_));
  }
  end_ = got == signature.size() ? got : 0;
  Header header;
  while (end_ > 0 && end_ + sizeof header <= size && read_some(fd_, &header, sizeof header, end_) == sizeof header) {
    const std::uint64_t payload = end_ + sizeof header;
    if (header.length > size - payload) break;
    const auto checksum = checksum_of(fd_, header, payload);
    if (!checksum) fail("cannot be read", errno == 0 ? EIO : errno);
    if (*checksum == header.checksum) {
      frames_.push_back({header.kind, {header.key.data(), digest_size}, payload, header.length});
    } else {
      torn_ += sizeof header + header.length;  // damaged after it was written; the frames after it are intact
    }
    end_ = payload + header.length;
  }
  torn_ += size - end_;
}

std::string FrameFile::read(const Frame& frame) const {
  std::string bytes(frame.length, '\0');
  if (read_some(fd_, bytes.data(), bytes.size(), frame.offset) != bytes.size())
    fail("cannot be read", errno == 0 ? EIO : errno);
  return bytes;
}

void FrameFile::append(std::uint32_t kind, const std::string& key, std::string_view payload) {
  Header header{.length = payload.size(), .kind = kind, .key = to_array(key)};
  header.checksum = to_array(trace::Sha256().add(summed(header)).add(payload).hex());
  std::string bytes(end_ == 0 ? signature : "");
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header).append(payload);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int cause = put < 0 ? errno : ENOSPC;
      [[maybe_unused]] const int undone =
          ::ftruncate(fd_, static_cast<off_t>(end_));  // if this fails too, the next scan skips the frame
      fail("cannot be written", cause);
    }
    done += static_cast<std::size_t>(put);
  }
  end_ += bytes.size();
  frames_.push_back({kind, {header.key.data(), digest_size}, end_ - payload.size(), payload.size()});
}

void FrameFile::sync() const {
  if (::fdatasync(fd_) != 0 && errno != EINVAL) fail("cannot be written to the disk", errno);
}

RecordFile::RecordFile(std::string path, FrameFile::Mode mode) : file_(std::move(path), mode) {
  for (const Frame& frame : file_.frames()) records_[frame.key] = frame;
}

void RecordFile::append(std::uint32_t kind, const std::string& key, std::string_view payload) {
  file_.append(kind, key, payload);
  records_[key] = file_.frames().back();
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < std::chrono::seconds(1)) return;
  synced_ = now;
  file_.sync();
}

}  // namespace kvbench::store
