// SPDX-License-Identifier: Apache-2.0
// Fitted constants and rates: what a bound would have to be multiplied by to be just right on a subject, and how fast
// errors fall. The rows are of kind `data`: the numbers are estimates, and no statement depends on them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/query_trials.hpp>

namespace kvbench::bounds {

/// The part of rows of fitted constants, and the suffix of the text of the largest one of a run
/// (name_largest_constants()).
inline constexpr std::string_view constant_part = "fitted constant C*";

/// Quantile q of independent numbers with a 95 % interval between order statistics, which holds for any distribution:
/// the ends are the numbers of rank l and u with P(B < l) and P(B >= u) <= 2.5 %, B binomial. An end that no rank
/// reaches is 0 or infinite.
struct QuantileEstimate {
  double value = 0;
  Interval interval;
};
QuantileEstimate estimate_quantile(std::vector<double> numbers, double q);

/// The errors of one query over seeds, and the bound without its constant.
struct BoundShape {
  double shape = 0;
  std::span<const double> errors;
};
/// Adds the row of C*, the 1 - delta quantile over seeds of error / shape for the worst query. `literal`: the constant
/// of the paper, or NaN. `shape`: the bound without its constant, in words. Queries whose shape is 0 or infinite are
/// left out.
void add_constant(CheckContext& context, const std::string& params, std::span<const BoundShape> queries, double delta,
                  double literal, const std::string& shape);
/// The same for literal bounds with this constant.
void add_constant(CheckContext& context, const std::string& params, std::span<const QueryTrials> queries, double delta,
                  double constant, const std::string& shape);

/// Notes in the text of the largest C* of each claim that it is the largest one.
void name_largest_constants(std::span<CheckRow> rows);

/// Slope of ln(root mean square error) over ln(size): seeds are divided into groups, each of which gives a slope; the
/// interval is Student's over the groups. errors: [size][seed]. Errors of a group that are all 0 leave out the size;
/// NaN where nothing is left.
struct Rate {
  double slope = NAN;
  Interval interval{NAN, NAN};
};
Rate error_rate(std::span<const double> sizes, std::span<const std::vector<double>> errors);

/// Adds the row of a rate; `expected` in words and as the bound.
void add_rate(CheckContext& context, const Statement& statement, const Rate& rate, double expected,
              const std::string& text);

/// The longest stream on which a literal bound is tested.
inline constexpr Index longest_literal = 2048;

/// The smallest of n = 64, 128, .. up to `most` at which `ratio`, a bound over its trivial bound, is below 1, or 0; and
/// where there is none, n* at which it would be if it went on to fall like ln(n)/n.
struct InformativeSize {
  Index n = 0;
  double needed = NAN;
};
InformativeSize informative_size(Index most, const std::function<double(Index)>& ratio);

}  // namespace kvbench::bounds
