// SPDX-License-Identifier: Apache-2.0
// The sentences about where configurations stand: the only place that words them.
#pragma once

#include <string>
#include <string_view>

#include <kvbench/evidence/standing.hpp>

namespace kvbench::report {

/// What a standing is about.
struct StandingWords {
  std::string at;  ///< how the sentence begins: "At 25 % of the memory"
  std::string is_best = "has the lowest error";
  std::string_view quantity = "error";   ///< of which ratios are
  std::string_view unit = "";            ///< before a mean: "KL "
  std::string best;                      ///< the mean of the best one: "0.1"
  std::string figures = "";              ///< all figures of the best one, where it is named
  std::string_view rows = "this trace";  ///< what cannot tell
  std::string needs = "";                ///< a sentence: what a test would take
  bool table = false;  ///< a table beside it has ratios and intervals, and marks what cannot be told by ~
};

/// The best one, those that no test tells from it, the first that is worse with its ratio and interval, what the tests
/// were made over, and how far that carries. Where everything that was tested is tied, no best one is named. Each list
/// is in ascending order of its numbers.
std::string standing_sentence(const evidence::Standing& standing, const StandingWords& words);

/// Those that were compared and not tested, and what a test takes; "" where there are none.
std::string untested_sentence(const evidence::Standing& standing, const StandingWords& words);

}  // namespace kvbench::report
