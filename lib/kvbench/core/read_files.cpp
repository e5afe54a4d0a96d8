// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/read_files.hpp>

#include <mutex>
#include <set>
#include <utility>

#include <sys/stat.h>

#include <kvbench/core/error.hpp>

namespace kvbench {
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
