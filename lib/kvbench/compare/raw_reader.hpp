// SPDX-License-Identifier: Apache-2.0
// Reads one metric from a file of `replay --raw` (schema kvbench_raw 1.0, docs/results.md).
#pragma once

#include <map>
#include <memory>

#include <kvbench/compare/query_results.hpp>

namespace kvbench::trace {
class InputFile;
}

namespace kvbench::compare {

/// The contents of a file other than the values.
struct RawLayout {
  std::size_t metrics = 0, metric = 0;  ///< number of metrics, and index of the requested one
  Index group = 1;                      ///< query heads per kv head
  std::size_t positions = 0;            ///< number of queries of all kv heads
  std::vector<QueryPlace> places;       ///< [heads * group]
  std::vector<Index> scored_tokens;     ///< of the prompts of `places`
  std::vector<QueryConfiguration> configurations;
  std::map<replay::ChangeKind, double> anchors;  ///< AnchorRatio::factor; a kind without anchors is not there
};

/// A checked file. read() reads one configuration of one query head at a time. Thread-safe.
class RawReader : public QueryResults {
 public:
  /// Throws Error with file, object and remedy where the file is not such a file or does not have the metric.
  RawReader(std::string path, std::string_view metric);

  const std::string& path() const override { return path_; }
  const std::vector<QueryPlace>& places() const override { return layout_.places; }
  const std::vector<QueryConfiguration>& configurations() const override { return layout_.configurations; }
  /// Whose names a reader may replace by those to show.
  std::vector<QueryConfiguration>& configurations() { return layout_.configurations; }
  /// Throws Error where the values in the file are invalid, IoError where reading fails or the file has changed since
  /// it was opened.
  std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const override;
  /// Throws as read().
  std::vector<NamedTokens> entries(std::size_t place, std::size_t configuration) const override;
  std::vector<double> probe_sums(std::size_t place, std::size_t configuration) const override;
  Index scored_tokens(std::size_t place) const override { return layout_.scored_tokens[place]; }
  double anchor_factor(std::size_t place, replay::ChangeKind kind) const override;

 private:
  std::string path_;
  RawLayout layout_;
  std::shared_ptr<const trace::InputFile> file_;
};

}  // namespace kvbench::compare
