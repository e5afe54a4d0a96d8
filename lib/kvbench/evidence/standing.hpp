// SPDX-License-Identifier: Apache-2.0
// Where the configurations of a group stand: the best, those that no test tells from it, and the next one.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench::evidence {

/// A configuration of a group and what was said of it.
struct Mark {
  std::string name;
  double mean = NAN;              ///< that `ratio` compares
  double ratio = NAN;             ///< to the best, as it was tested; NaN: the means divided
  Interval interval{NAN, NAN};    ///< of `ratio`, at the level of its test (adjust()); NaN where there is none
  std::optional<bool> tied = {};  ///< not told from the best; absent: not tested
  bool compared = true;           ///< has seen the observations of the best
  std::string tested_over = "";   ///< units of the test
  std::size_t row = 0;            ///< its number in the group, by which callers know it
};

/// The configurations of a group beside the best, each list from the smallest ratio on.
struct Standing {
  Mark best;
  std::vector<Mark> tied, worse, untested;
  std::vector<Mark> elsewhere;  ///< not compared

  /// The first one that is worse; null: none.
  const Mark* next() const { return worse.empty() ? nullptr : &worse.front(); }
  /// What the tests were made over; empty where nothing was tested.
  std::string tested_over() const;
  /// Number of configurations of which the best one is the best.
  std::size_t compared() const { return 1 + tied.size() + worse.size() + untested.size(); }
  /// Whether there are others, and no test tells any of them from the best.
  bool is_undecided() const { return worse.empty() && compared() > 1; }
  /// Number of those that were tested against it.
  std::size_t tested() const { return tied.size() + worse.size(); }
  /// All that were compared, from the best one on.
  std::vector<const Mark*> ranked() const;
};

/// `best`: its number in the group; absent: the one with the smallest mean, in groups that nobody compared, and then
/// all others count as worse unless they are tied. Sets Mark::row, and ratios that are NaN.
Standing standing_of(std::vector<Mark> group, std::optional<std::size_t> best);

}  // namespace kvbench::evidence
