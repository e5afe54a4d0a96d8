// SPDX-License-Identifier: Apache-2.0
// Measures of a trace itself: no method, no budget, no query.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

enum class Measure {
  clusterability,         ///< keys, values, and both joined; x = number of centres, 1 .. 64
  similarity_by_distance  ///< keys; x = distance in tokens, 1 .. 255 (Chelsea's local region of 256 tokens)
};
const std::map<std::string, Measure>& measures();
std::string_view name_of(Measure measure);

struct MeasureRow {
  std::string run;  ///< of a sweep
  std::string trace, sha256, model, prompt;
  std::int64_t layer = 0;
  Index kv_head = 0;
  Measure measure = Measure::clusterability;
  std::string array;  ///< keys, values or both
  Index x = 0;
  double value = 0;
  Index count = 0;  ///< points or pairs behind the value
};

/// Measures all tokens of one head; rows stand in the order measure, array, x. `backend` computes on the host. Throws
/// Interrupted where `stop` is set.
std::vector<MeasureRow> measure_head(const trace::Reader& reader, const HeadPlace& place, const std::vector<Measure>& measures,
                                     Backend& backend, const std::atomic<bool>* stop = nullptr);

}  // namespace kvbench
