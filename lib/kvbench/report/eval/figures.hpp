// SPDX-License-Identifier: Apache-2.0
// Figures of a section of an evaluation, a file each.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// KL, nll and exact match against bytes, one figure per task.
std::vector<Figure> damage_figures(const EvalSection& section);

/// KL in nats that a replay predicts, by the name and the budget of a configuration.
using PredictedByName = std::map<std::pair<std::string, Budget>, double>;
/// Predicted against measured KL, one drawing per task; without drawings where no configuration has both. `trace`: of
/// the predictions.
Figure predicted_figure(const EvalSection& section, const PredictedByName& predicted, const std::string& trace);

/// The ratio of each method's KL to the best, one drawing per task and budget.
Figure standing_figure(const TextsTogether& texts);

/// Growth of errors with depth, additivity, and sensitivity per layer, as far as the rows have them.
std::vector<Block> depth_blocks(const EvalSection& section);

}  // namespace kvbench::report
