// SPDX-License-Identifier: Apache-2.0
// Numbers of the figures by which rows are ranked, as texts, with what stands before those that do not say how large
// the damage is.
#pragma once

#include <string>

#include <kvbench/replay/records/figures.hpp>

namespace kvbench::report {

/// Whether it is ranked by a value beyond the range of its figure.
bool is_large(const replay::Record& r);
/// Whether its value says how large the damage is: it is neither large nor outside.
bool says_size(const replay::Record& r);
/// "large: " before a mean beyond the range of the figure, otherwise "".
const char* mark_of(const replay::RankingFigure& figure, double mean);
/// The same of the figure that ranks a row, or "outside: " where it means nothing.
const char* mark_of(const replay::Record& r);
/// The number of a row: "0.12", "large: 0.3" or "outside: 0.09"; "-" where it has none.
std::string figure_text(const replay::RankingFigure& figure, const replay::Record& r);

/// Makes `figure` the one that ranks the row. What another figure decided is no longer said of it.
void rank_by(replay::Record& r, replay::FigureNumber figure);

/// Takes away what a row says of the test against a best row that is not that of the report.
void forget_test(replay::Record& r);

}  // namespace kvbench::report
