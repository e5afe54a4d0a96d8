// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/output_path.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

namespace fs = std::filesystem;

/// The absolute path without links in its folder; where the folder does not exist, as it was given.
fs::path in_real_folder(const fs::path& path) {
  std::error_code missing;
  const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", missing);
  return missing ? path : folder / path.filename();
}

/// Linux shows the open files of a process as links in /proc, to which /dev/stdout and /dev/fd lead.
bool in_process_folder(const fs::path& path) { return path.string().starts_with("/proc/"); }

/// Follows links one by one; ends at the first path that is not a link, or that is an open file of a process.
fs::path follow_links(const std::string& path) {
  constexpr int most_links = 40;  // the limit of Linux
  fs::path at = in_real_folder(path);
  std::error_code none;
  for (int links = 0; fs::is_symlink(at, none) && !in_process_folder(at); ++links) {
    if (links == most_links) throw IoError("{}: its symbolic links form a circle; name the file itself.", path);
    const fs::path to = fs::read_symlink(at, none);
    if (none) break;
    at = in_real_folder(to.is_absolute() ? to : at.parent_path() / to);
  }
  return at;
}

}  // namespace

std::string target_of(const std::string& path) { return follow_links(path).lexically_normal().string(); }

bool same_file(const std::string& a, const std::string& b) {
  struct stat x {
  }, y{};
  if (::stat(a.c_str(), &x) == 0 && ::stat(b.c_str(), &y) == 0)
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
  return target_of(a) == target_of(b);
}

bool is_stream(const std::string& path) {
  if (in_process_folder(follow_links(path))) return true;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode));
}

void check_replaceable(const std::string& path) {
  struct stat status {};
  if (in_process_folder(follow_links(path)) || (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))) {
    throw IoError(
        "{}: cannot be written: it is {}; name a regular file.", path,
        S_ISDIR(status.st_mode) ? "a folder" : "a device, a pipe or a socket, which cannot be replaced by a file");
  }
  if (S_ISREG(status.st_mode) && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
    throw IoError("{}: cannot be replaced: {}; make it writable with chmod +w, or choose another file name.", path,
                  std::strerror(errno));
  }
}

void check_distinct(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs) {
  const auto is_checked = [](const NamedFile& file) { return !file.path.empty() && file.path != "-"; };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    if (!is_checked(output)) continue;
    const auto require_other = [&](const NamedFile& other, const char* harm) {
      if (!is_checked(other) || !same_file(output.path, other.path)) return;
      throw Error("{} {}: is the same file as {} ({}){}; name another file", output.name, output.path, other.name,
                  other.path, harm);
    };
    for (const NamedFile& input : inputs) require_other(input, ", which would be replaced");
    if (is_stream(output.path)) continue;
    for (const NamedFile& other : outputs.subspan(i + 1)) require_other(other, "");
  }
}

std::filesystem::path temporary_folder() {
  std::error_code code;
  std::filesystem::path folder = std::filesystem::temp_directory_path(code);
  if (code)
    throw Error("the folder for temporary files cannot be used: {}; set TMPDIR to an existing folder", code.message());
  return folder;
}

namespace {

struct ReadFiles {
  std::mutex mutex;
  bool protect = false;
  std::set<std::pair<dev_t, ino_t>> files;
};
ReadFiles& read_files() {
  static ReadFiles files;
  return files;
}

void remember(const struct stat& status) {
  const std::lock_guard lock(read_files().mutex);
  if (read_files().protect && S_ISREG(status.st_mode)) read_files().files.emplace(status.st_dev, status.st_ino);
}

}  // namespace

void protect_read_files() {
  const std::lock_guard lock(read_files().mutex);
  read_files().protect = true;
}

void forget_read_files() {
  const std::lock_guard lock(read_files().mutex);
  read_files().protect = false;
  read_files().files.clear();
}

void remember_read(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) remember(status);
}

void remember_read(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) == 0) remember(status);
}

void check_not_read(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  const std::lock_guard lock(read_files().mutex);
  if (read_files().files.contains({status.st_dev, status.st_ino}))
    throw Error("{}: is an input of this run, which the output would destroy; name another file", path);
}

}  // namespace kvbench
