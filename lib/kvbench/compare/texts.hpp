// SPDX-License-Identifier: Apache-2.0
// Which method is best over several texts: the prompts of one trace, and traces. An interval over queries holds for the
// texts that were replayed; only an interval over texts says what to expect of another one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::compare {

/// A configuration over all texts on which its group was replayed.
struct TextSummary {
  std::string method, params;
  Budget budget;
  Index texts = 0;
  replay::FigureNumber figure{};  ///< Record::ranked_by of its rows
  double error = 0;               ///< geometric mean of the mean of the figure of each text
  Interval interval;              ///< 95 % of `error`, Student's t on logarithms; NaN below three texts
  double mean_rank =
      0;           ///< mean over the texts of the rank among the ranked methods; 1 is best, ties share their mean rank
  Index wins = 0;  ///< texts with the lowest error
};

/// From the rows over all layers of single texts, in the order of budgets and then of `error`; rows of one run of a
/// sweep. References and `random` are not ranked, nor are configurations without a result on every text. Empty where no
/// group has two texts.
std::vector<TextSummary> summarize_texts(std::span<const replay::Record> records);

}  // namespace kvbench::compare
