// SPDX-License-Identifier: Apache-2.0
// Compares configurations within one group of results: a layer, a query head, a prompt, a trace or a task.
#pragma once

#include <algorithm>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/pair_values.hpp>

namespace kvbench::compare {

/// Places that are compared together, and the columns that identify them.
struct ComparisonGroup {
  Comparison identity;
  std::vector<std::size_t> places;
};
/// Divides the places into groups, in the order of their first places. Every place is in one group.
std::vector<ComparisonGroup> groups_of(const std::vector<QueryPlace>& places, Span span);

/// The settings of evaluations in which groups of the same task and injection differ, such as "the layers (0-2 and
/// 0-29)", or "".
std::string difference_of(std::span<const ComparisonGroup> groups);

inline bool found(const GroupValues& group) { return std::ranges::any_of(group, &SideValues::found); }

class GroupComparer {
 public:
  GroupComparer(const Catalogue& catalogue, const ComparisonGroup& group, replay::MetricInfo metric, int flips)
      : catalogue_(catalogue), group_(group), metric_(std::move(metric)), flips_(flips) {}

  /// The values that are compared.
  GroupValues read(const Side& side) const;

  /// Two sides whose values are read: a row without a test, `skipped` with the reason where there is no pair.
  struct Prepared {
    Comparison row;
    evidence::Pair pair;
    std::string cost;  ///< that the two do not cost the same
  };
  Prepared prepare(const Side& a, const GroupValues& in_a, const Side& b, const GroupValues& in_b) const;

  /// Tests prepared pairs as one group (evidence::test_group()). Rows without an adjusted p-value: `tied`, `untested`
  /// or `skipped`, the last two with the reason.
  std::vector<Comparison> test(std::vector<Prepared> group) const;
  /// A pair alone.
  Comparison compare(const Side& a, const GroupValues& in_a, const Side& b, const GroupValues& in_b) const {
    return test({prepare(a, in_a, b, in_b)}).front();
  }

  /// How the values of the metric are compared.
  evidence::Scale scale() const;
  /// The values of a side by place, without those of layers that no method compressed unless all are such.
  PlaceSums sums_of(const GroupValues& of) const;
  /// What places with so many layers are a sample of, in a group over several layers; none of documents.
  std::optional<evidence::PlaceSample> sample_of(std::size_t layers) const;

 private:
  std::vector<std::size_t> usable_places(const GroupValues& in_a, const GroupValues& in_b, Comparison& out) const;

  const Catalogue& catalogue_;
  const ComparisonGroup& group_;
  replay::MetricInfo metric_;
  int flips_;
};

}  // namespace kvbench::compare
