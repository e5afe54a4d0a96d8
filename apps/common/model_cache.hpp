// SPDX-License-Identifier: Apache-2.0
// fp32 copies of models in ${XDG_CACHE_HOME:-~/.cache}/kvbench/f32, each named by the SHA-256 of its model and beside a
// file with its own SHA-256.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kvbench::app {

struct ModelCopy {
  std::filesystem::path path;
  std::string model;  ///< name of the file that was converted; empty where it is not known
  std::uint64_t bytes = 0;
  std::filesystem::file_time_type used;
};

class ModelCache {
 public:
  /// Throws Error where neither XDG_CACHE_HOME nor HOME is set, or where KVBENCH_CACHE_GIB is not a number.
  ModelCache();

  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t limit() const { return limit_; }  ///< bytes; KVBENCH_CACHE_GIB, 50 GiB without it

  /// The most recently used one first; those that earlier versions of kvbench left are among them.
  std::vector<ModelCopy> copies() const;

  /// The path of the copy of `model`, whose digest is `sha256`. Where there is none, or where its digest is not the one
  /// beside it, convert(path) makes it, which takes about `bytes`; the copies that were not used for longest make room
  /// first. Throws Error where a copy exceeds the limit, IoError where the cache cannot be written.
  std::string copy_of(const std::string& model, const std::string& sha256, std::uint64_t bytes,
                      const std::function<void(const std::string& path)>& convert) const;

  /// Removes a copy. Throws IoError where that fails.
  static void remove(const ModelCopy& copy);

 private:
  void make_room(std::uint64_t bytes) const;

  std::filesystem::path folder_;
  std::uint64_t limit_;
};

}  // namespace kvbench::app
