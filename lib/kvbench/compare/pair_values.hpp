// SPDX-License-Identifier: Apache-2.0
// Results per query as values that tests take: of two sides on the queries that both have, or of one side.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <kvbench/compare/catalogue.hpp>
#include <kvbench/evidence/test.hpp>

namespace kvbench::compare {

/// The values of a side at all places of a group.
using GroupValues = std::vector<SideValues>;

/// Sums over the layers of texts.
class PlaceSums {
 public:
  void add(const QueryPlace& place, double value);
  std::size_t layers() const;
  /// [texts][layers]; empty where a text lacks a layer that others have.
  evidence::Cells cells() const;

 private:
  std::map<std::pair<std::string, std::int64_t>, std::pair<double, double>> sums_;  // and numbers, by text and layer
};

/// Seeds of both sides; no seed: the side has one value.
using PairedSeeds = std::vector<std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>>;

/// The values of both sides on the queries with both. Equal seeds are paired, or, where the sides have none in common,
/// the k-th with the k-th; a side that draws nothing is paired with each seed of the other.
class PairValues {
 public:
  PairValues(const GroupValues& a, bool a_draws, const GroupValues& b, bool b_draws);
  void add(const QueryPlace& place, const SideValues& in_a, const SideValues& in_b);

  std::size_t seeds() const { return seeds_.size(); }
  std::size_t layers() const { return places_a_.layers(); }
  evidence::Pair pair();
  Index pairs = 0, left_out = 0;  ///< of values, and those of which one does not apply

 private:
  void add(const QueryPlace& place, std::size_t query, std::size_t seed, double a, double b);

  PairedSeeds seeds_;
  std::map<std::pair<std::string, std::size_t>, std::size_t> blocks_;  // by prompt and block
  std::map<std::tuple<std::string, std::int64_t, Index>, std::size_t>
      heads_;  // by kv head, because each has its own random numbers
  evidence::Values a_, b_;
  PlaceSums places_a_, places_b_;
};

}  // namespace kvbench::compare
