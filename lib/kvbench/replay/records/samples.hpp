// SPDX-License-Identifier: Apache-2.0
// The results that one row summarises.
#pragma once

#include <span>
#include <vector>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::replay {

/// Part of the results of one head and one seed: query heads [g, g + heads) and queries [i, i + queries).
struct Sample {
  const HeadResult* head;
  const ConfigurationResult* result;
  std::size_t seed;  // index among the seeds of the row
  Index g = 0, heads = 0, i = 0, queries = 0;
};

/// Sets everything of a row but what it is about: status and reason, layers, costs, metrics, and the predicted KL of
/// rows over all heads. `seeds`: of the row; `prompts`: by HeadPlace::prompt.
void summarize(const std::vector<Sample>& samples, std::size_t seeds, std::span<const ReplayFrame::Prompt> prompts,
               Record& record);

}  // namespace kvbench::replay
