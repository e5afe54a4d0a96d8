// SPDX-License-Identifier: Apache-2.0
// Reads one metric back from what `replay --raw` wrote (schema kvbench_raw 1.0, docs/results.md).
#pragma once

#include <kvbench/compare/query_results.hpp>
#include <kvbench/core/error.hpp>

namespace kvbench {

/// What stands in a file beside the values.
struct RawLayout {
  std::size_t metrics = 0, metric = 0;  ///< number of metrics, and the one that was asked for
  Index group = 1;                      ///< query heads a kv head
  std::vector<QueryPlace> places;       ///< [heads * group]
  std::vector<QueryConfiguration> configurations;
};

/// An open file, described and checked. Values are read when asked for, a configuration on a query head at a time. Thread-safe.
class RawReader : public QueryResults {
 public:
  /// Throws Error naming file, object and remedy where it is no such file, or keeps no such metric.
  RawReader(std::string path, std::string_view metric);

  const std::string& path() const override { return path_; }
  const std::vector<QueryPlace>& places() const override { return layout_.places; }
  const std::vector<QueryConfiguration>& configurations() const override { return layout_.configurations; }
  /// Throws Error where what the file has cannot be used.
  std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const override;

 private:
  std::string path_;
  RawLayout layout_;
};

}  // namespace kvbench
