// SPDX-License-Identifier: Apache-2.0
// Somebody else's selection as a method: entries from an HDF5 file in the schema of --raw (docs/results.md), scored like any
// other. `--method file:kept.h5`.
#pragma once

#include <string>
#include <string_view>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench {

/// The entries that a file holds for one kv head.
struct KeptHead {
  std::vector<std::int32_t> positions;  ///< [m] of the queries that tables by query refer to; may be empty where there are none
  Index first_query = 0;                ///< index in `positions` of the query of row 0 of tables by query
  std::vector<HostTable> tables;         ///< in the trace's token numbers
};

/// An open file, described and checked. Reading is thread-safe.
class KeptFile {
 public:
  /// Throws Error naming file, object and remedy where it is no such file.
  explicit KeptFile(std::string path);

  /// Entries of this cell (/heads/<h>/<cell>). Throws Unavailable where the file has none for the head, Error where what it
  /// has cannot be used: wrong shapes, ids below -1, numbers that are not finite. d, dv, group: those of the trace.
  KeptHead read(std::string_view prompt, std::int64_t layer, Index kv_head, Index cell, Index d, Index dv, Index group) const;

 private:
  struct Place {
    std::string group;  ///< below /heads
    std::string prompt;
    std::int64_t layer = 0, kv_head = 0;
  };
  std::string path_;
  std::uint64_t length_ = 0;
  std::vector<Place> heads_;
};

/// The method that answers with the entries of a file; `name` is "file:PATH". It lives as long as the program. Its parameters
/// are set under the name `file`.
const MethodInfo& kept_file_method(const std::string& name);

/// A method of the registry, or of a file. Throws Error as find_method() and KeptFile do.
const MethodInfo& find_any_method(const std::string& name);

}  // namespace kvbench
