// SPDX-License-Identifier: Apache-2.0
// Values of one metric by query, as they were kept: what a comparison of methods reads, from whatever kind of file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/replay/records/results.hpp>

namespace kvbench {

/// A query head of a layer of a prompt, as one run replayed it. Texts are empty where the file does not say.
struct QueryPlace {
  std::string run, trace, sha256, model, prompt, protocol;  ///< sha256: its first 12 digits
  std::int64_t layer = 0;
  Index kv_head = 0, query_head = 0;
  std::vector<std::int32_t> positions;  ///< of the queries
};

/// A method with its parameters, at one budget and seed.
struct QueryConfiguration {
  std::string method, params, budget;
  std::uint32_t seed = 0;  ///< 0 for methods without randomness
  bool seeded = false;
};

/// The status of this name, or nothing where there is none.
inline std::optional<Status> find_status(std::string_view name) {
  for (const Status status : {Status::ok, Status::skipped, Status::failed, Status::infeasible}) {
    if (name == name_of(status)) return status;
  }
  return std::nullopt;
}

/// What a configuration scored at a place.
struct QueryValues {
  Status status = Status::ok;
  std::string reason;
  bool dense = false;         ///< the layer was kept exact
  std::vector<float> values;  ///< one for each position where the status is ok; NaN where the metric does not apply
};

class QueryResults {
 public:
  virtual ~QueryResults() = default;
  virtual const std::string& path() const = 0;
  virtual const std::vector<QueryPlace>& places() const = 0;
  virtual const std::vector<QueryConfiguration>& configurations() const = 0;
  /// Absent where the file holds nothing of this configuration at this place.
  virtual std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const = 0;
};

}  // namespace kvbench
