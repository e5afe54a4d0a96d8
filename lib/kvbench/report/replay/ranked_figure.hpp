// SPDX-License-Identifier: Apache-2.0
// What sentences, tables and drawings say of the figure by which rows are ranked.
#pragma once

#include <string>
#include <string_view>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::report {

struct FigureWords {
  std::string_view key;        ///< its column in CSV files
  std::string_view quantity;   ///< "error": "has the lowest error", "1.4 times the error"
  std::string_view title;      ///< "Error": "Error by layer"
  std::string_view column;     ///< heading of a column
  std::string_view name;       ///< "Mean relative error"
  std::string_view axis;       ///< title of an axis
  std::string_view meaning;    ///< how captions begin
  std::string_view unit = "";  ///< before a number: "KL "
};
const FigureWords& figure_words(replay::RankBy figure);

/// Whether it is ranked by a prediction that is beyond its range.
bool is_large_prediction(const replay::Record& r);
/// Whether its value says how large the damage is: it is no prediction beyond its range or outside its region.
bool says_size(const replay::Record& r);
/// What stands before its number: "outside: " where it is no prediction, "large: " beyond the range of predictions,
/// otherwise nothing.
const char* prediction_mark(const replay::PredictedKl& kl);
const char* prediction_mark(const replay::Record& r);
/// The same of a mean over rows of this figure.
const char* prediction_mark(replay::RankBy figure, double mean);
/// "0.12", "large: 0.3" or "outside: 0.09".
std::string predicted_text(const replay::PredictedKl& kl);
/// The mean over the row of the figure that ranks it.
std::string ranked_text(const replay::Record& r);
/// Its 95 % interval; NaN where there is none.
Interval ranked_interval(const replay::Record& r);

/// Makes `figure` the one that ranks the row. What another figure decided is no longer said of it.
void rank_by(replay::Record& r, replay::RankBy figure);

}  // namespace kvbench::report
