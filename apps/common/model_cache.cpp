// SPDX-License-Identifier: Apache-2.0
#include <apps/common/model_cache.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <sys/stat.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/trace/sha256.hpp>

#include <apps/common/program.hpp>

namespace kvbench::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

fs::path cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (xdg != nullptr && *xdg == '/') return fs::path(xdg) / "kvbench";  // the XDG specification ignores other paths
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "kvbench";
  throw Error(
      "fp32 copies of models are in a cache folder, but neither XDG_CACHE_HOME (an absolute path) nor HOME is set; set "
      "one");
}

std::uint64_t limit_in_bytes() {
  const char* text = std::getenv("KVBENCH_CACHE_GIB");
  if (text == nullptr) return 50 * gib;
  std::uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, code] = std::from_chars(text, end, number);
  if (code != std::errc{} || stop != end || number > (1 << 20))
    throw Error("KVBENCH_CACHE_GIB is '{}'; it must be a whole number of GiB from 0 to {}", text, 1 << 20);
  return number * gib;
}

fs::path digest_file(const fs::path& copy) { return copy.string() + ".sha256"; }

/// What tells a file that nobody has touched: writing to it, replacing it and setting its times change this. Empty
/// where there is none.
std::string stamp_of(const fs::path& file) {
  struct stat of {};
  if (::stat(file.c_str(), &of) != 0 || !S_ISREG(of.st_mode)) return "";
  return fmt::format("#: {} {} {}.{:09}", of.st_size, of.st_ino, of.st_ctim.tv_sec, of.st_ctim.tv_nsec);
}

/// The file beside a copy: a line that `sha256sum --check` reads, and comments: the name of the model, and the stamp
/// that the copy had when its digest was computed.
void write_digest(const fs::path& copy, const std::string& digest, const std::string& model, const std::string& stamp) {
  AtomicFile file(digest_file(copy).string());
  std::ofstream(file.temporary()) << fmt::format("{}  {}\n# {}\n{}\n", digest, copy.filename().string(), model, stamp);
  file.publish();
}

std::string model_of(const fs::path& copy) {
  const std::string text = begin_of_file(digest_file(copy).string(), 8192);
  const std::size_t comment = text.find("\n# ");
  return comment == text.npos ? "" : text.substr(comment + 3, text.find('\n', comment + 1) - comment - 3);
}

/// Whether a copy is there and has the digest beside it. A copy that nobody has touched since this was so is not read:
/// that takes a third to a half of the start of a program.
bool is_whole(const fs::path& copy) {
  const std::string stamp = stamp_of(copy), text = begin_of_file(digest_file(copy).string(), 8192);
  if (stamp.empty()) return false;
  if (text.ends_with("\n" + stamp + "\n")) return true;
  const std::string digest = trace::sha256_of_file(copy.string());
  if (text.starts_with(digest)) {
    try {
      write_digest(copy, digest, model_of(copy), stamp);
    } catch (const IoError&) {  // a cache that can only be read
    }
    return true;
  }
  try_to_show(fmt::format("{}: does not have the digest beside it; the model is converted again\n", copy.string()));
  return false;
}

/// The copies that earlier versions named after the path, the size and the time of the model.
bool is_of_earlier_version(const fs::path& file) { return file.filename().string().ends_with("-f32.gguf"); }

}  // namespace

ModelCache::ModelCache() : folder_(cache_folder() / "f32"), limit_(limit_in_bytes()) {}

std::vector<ModelCopy> ModelCache::copies() const {
  std::vector<ModelCopy> all;
  std::error_code none;
  // Folders, broken links and what is removed meanwhile are no copies.
  const auto add = [&](const fs::path& file, const fs::path& stamp) {
    std::error_code gone;
    if (!fs::is_regular_file(file, gone)) return;
    const ModelCopy copy{file, model_of(file), fs::file_size(file, gone),
                         fs::last_write_time(fs::is_regular_file(stamp, none) ? stamp : file, none)};
    if (!gone) all.push_back(copy);  // a time that the clock cannot express counts as long ago
  };
  for (const auto& entry : fs::directory_iterator(folder_.parent_path(), none))
    if (is_of_earlier_version(entry.path())) add(entry.path(), entry.path());
  for (const auto& entry : fs::directory_iterator(folder_, none))
    if (entry.path().extension() == ".gguf") add(entry.path(), digest_file(entry.path()));
  std::ranges::sort(all, std::ranges::greater(), &ModelCopy::used);
  return all;
}

void ModelCache::remove(const ModelCopy& copy) {
  std::error_code error, none;
  fs::remove(copy.path, error);
  if (error) throw IoError("{}: cannot be removed: {}.", copy.path.string(), error.message());
  fs::remove(digest_file(copy.path), none);
}

void ModelCache::make_room(std::uint64_t bytes) const {
  if (bytes > limit_) {
    throw Error(
        "the fp32 copy of the model takes {:.1f} GiB, more than the {} GiB of the cache {}; set KVBENCH_CACHE_GIB",
        static_cast<double>(bytes) / gib, limit_ / gib, folder_.string());
  }
  std::uint64_t kept = bytes;
  for (const ModelCopy& copy : copies()) {
    if (kept + copy.bytes <= limit_)
      kept += copy.bytes;
    else
      remove(copy);
  }
}

std::string ModelCache::copy_of(const std::string& model, const std::string& sha256, std::uint64_t bytes,
                                const std::function<void(const std::string& path)>& convert) const {
  const fs::path copy = folder_ / (sha256 + ".gguf");
  std::error_code error;
  if (is_whole(copy)) {
    fs::last_write_time(digest_file(copy), fs::file_time_type::clock::now(), error);  // when it was last used
  } else {
    fs::create_directories(folder_, error);
    if (error) throw IoError("{}: the cache folder cannot be created: {}", folder_.string(), error.message());
    make_room(bytes);
    AtomicFile file(copy.string());
    file.reserve(bytes);
    convert(file.temporary());
    const std::string digest = trace::sha256_of_file(file.temporary());
    file.publish();
    write_digest(copy, digest, fs::path(model).filename().string(), stamp_of(copy));
  }
  return copy.string();
}

}  // namespace kvbench::app
