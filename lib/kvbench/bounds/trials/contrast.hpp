// SPDX-License-Identifier: Apache-2.0
// Tests of claims that one quantity is larger than another, on paired observations.
// Claims that one method has a smaller error than another.
#pragma once

#include <span>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/paired_replay.hpp>

namespace kvbench::bounds {

/// The mean of differences over independent units (a block of neighbouring queries of a head, a block of tokens),
/// tested by sign flips: if there is no difference, both signs of each difference are equally likely, whatever its
/// size.
struct Contrast {
  Index units = 0;  ///< independent units that have an observation
  double mean = NAN, median = NAN;
  Interval interval{NAN, NAN};  ///< 95 %, bootstrap over the units
  double p_value = 1;           ///< two-sided, of "the mean is 0"
  double p_least = 1;           ///< the smallest that this number of units can give
  std::int64_t positive = 0;    ///< units with a positive difference
  double units_needed = NAN;    ///< units for a power of 80 % at 5 % if the true effect were the measured one
};
/// Units whose difference is NaN have no observation and are left out. Without resamples there is no interval.
Contrast contrast(std::span<const double> differences, int resamples = 1000);

/// Adds the row of a claim that the mean, which becomes `measured`, is positive. `what` begins its text. Without units
/// the row was not tested.
CheckRow& add_claim(CheckContext& context, const Statement& statement, const Contrast& contrast,
                    const std::string& what);

/// Two methods of a replay, by number: the error of `better` is below `allowed` times that of `other`.
struct ErrorClaim {
  std::size_t better, other;
  std::size_t budget = 0;
  double allowed = 1;
};

/// Adds the row of a claim. Over layers and texts, where these are units (trace::layers_are_units()), the logarithm of
/// allowed * error of other / error of better is tested (evidence::test_group()), and `measured` is the geometric mean
/// of this ratio; otherwise the difference of the errors over blocks of 16 queries. Without results the row is
/// untestable.
CheckRow& add_error_claim(CheckContext& context, const Statement& statement, const PairedReplay& replay,
                          const ErrorClaim& claim);

}  // namespace kvbench::bounds
