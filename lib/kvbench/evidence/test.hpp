// SPDX-License-Identifier: Apache-2.0
// The paired test of configurations against a reference, such as the best one.
#pragma once

#include <span>
#include <string>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/core/place_test.hpp>
#include <kvbench/evidence/values.hpp>

namespace kvbench::evidence {

/// A configuration and its reference, on the observations that both have.
struct Pair {
  Values a, reference;
  std::optional<PlaceSample> sample;  ///< absent: the places stand for themselves alone
};

/// What decides between a configuration and its reference.
struct Test {
  enum class Over { nothing, places, blocks };
  /// nothing: an infinite mean, one seed of random draws, too few blocks, or no ratio in a group over places.
  Over over = Over::nothing;
  PlaceTest places = {};  ///< of the differences of Scale::of(); not tested where places are no sample or have no ratio
  std::optional<PairedSums> sums = {};  ///< both sides over blocks; absent where the values have none
  PairedTest blocks = {};               ///< of their means; of no blocks where the values have none
  double p_value = NAN;
  std::size_t units = 0;         ///< layers or texts, whichever are fewer, or blocks
  std::string tested_over = "";  ///< "10 of 30 layers and 3 texts", "24 blocks of queries"; empty over nothing
  double p_adjusted = NAN;       ///< over the group
  /// Over places: the ratio or the difference, and its interval at the level of the adjustment.
  double effect = NAN;
  Interval interval{NAN, NAN};
  /// Over places: the means whose ratio or difference `effect` is, geometric ones for a ratio.
  double mean_a = NAN, mean_reference = NAN;
};

/// How a group is tested.
struct Design {
  Scale scale;
  std::size_t family = 1;  ///< hypotheses of a group over blocks; over places they are the pairs that are tested
  int flips = 9999;        ///< of the test over blocks
  std::string_view block = "blocks of queries";
};

/// Both sides of a test over blocks; none where the two have seen different observations.
std::optional<PairedSums> paired(const Values& a, const Values& b);

/// Tests the pairs of a group, all over the same: over places where these are a sample and any pair has a ratio on each
/// of them (place_test()), otherwise over blocks. In a group over places, a pair without a ratio on every place, such
/// as one with a mean of 0 on a layer, is not tested. Over blocks the p-value is that of paired_test(); where there are
/// logarithms that agree that `a` is larger, twice the smaller of its p-value and theirs: a few huge values make any
/// difference of means uncertain, but not one of logarithms. Blocks that can give no significant p-value in the family
/// test nothing. Pairs must be paired().
std::vector<Test> test_group(std::span<const Pair> pairs, const Design& design);

/// A p-value adjusted by Holm, and the level of the interval that agrees with it.
struct Adjusted {
  double p = NAN;
  double level = 0.95;
};
/// Holm's adjustment over `family` hypotheses, 0: over those that are not NaN, which stay NaN. The k-th smallest
/// p-value is tested at 5 % / (family - k + 1), and those from the first one that is not significant on at the limit of
/// that one. An interval at 1 minus this limit therefore holds "no difference" exactly where the adjusted p-value is
/// above 5 %.
std::vector<Adjusted> adjust(std::span<const double> p_values, std::size_t family = 0);

/// The best of a group, by the mean that a test compares.
struct Best {
  std::size_t index = 0;
  bool over_places = false;  ///< by its mean of Scale::of() over places, otherwise by Values::mean
};
/// The first configuration with the best mean. Over places, where these are a sample; by the means of all values where
/// they are not, or where a configuration without a mean over places, because of a ratio that it lacks, has a better
/// one. `group` is not empty.
Best best_of(std::span<const Values* const> group, const std::optional<PlaceSample>& sample, const Scale& scale);

/// The mean of Scale::of() over places: the logarithm of the geometric mean; NaN where there is none.
double over_places(const Values& values, const Scale& scale);

}  // namespace kvbench::evidence
