// SPDX-License-Identifier: Apache-2.0
// Measures of the keys and values of a trace, without a method, budget or query.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::measures {

enum class Measure {
  clusterability,         ///< of keys, of values and of both joined; x = number of centres, 1 .. 64
  similarity_by_distance  ///< of keys; x = distance in tokens, 1 .. 255 (Chelsea's local region of 256 tokens)
};
const std::map<std::string, Measure>& names();
std::string_view name_of(Measure measure);

struct MeasureRow {
  std::string run;  ///< name of the run in the sweep file
  std::string trace, sha256, model, prompt;
  std::int64_t layer = 0;
  Index kv_head = 0;
  Measure measure = Measure::clusterability;
  std::string array;  ///< keys, values or both
  Index x = 0;
  double value = 0;
  Index count = 0;  ///< points or pairs behind the value
};

/// Measures all tokens of one head. Rows are sorted by measure, array and x. `backend` must compute on the host. Throws
/// Interrupted where `stop` is set.
std::vector<MeasureRow> measure_head(const trace::Reader& reader, const replay::HeadPlace& place,
                                     const std::vector<Measure>& measures, Backend& backend,
                                     const std::atomic<bool>* stop = nullptr);

}  // namespace kvbench::measures
