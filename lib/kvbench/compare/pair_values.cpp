// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/pair_values.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace kvbench::compare {
namespace {

std::vector<std::uint32_t> seeds_of(const GroupValues& group) {
  std::vector<std::uint32_t> seeds;
  for (const SideValues& values : group) {
    for (const auto& [seed, row] : values.seeds) {
      if (std::ranges::find(seeds, seed) == seeds.end()) seeds.push_back(seed);
    }
  }
  std::ranges::sort(seeds);
  return seeds;
}

/// The seeds of both sides that are paired.
PairedSeeds pair_seeds(const GroupValues& a, bool a_draws, const GroupValues& b, bool b_draws) {
  PairedSeeds pairs;
  const auto of_a = seeds_of(a), of_b = seeds_of(b);
  if (!a_draws && !b_draws) return {{std::nullopt, std::nullopt}};
  if (!a_draws || !b_draws) {
    for (const std::uint32_t seed : a_draws ? of_a : of_b) {
      pairs.emplace_back(a_draws ? std::optional(seed) : std::nullopt, b_draws ? std::optional(seed) : std::nullopt);
    }
    return pairs;
  }
  for (const std::uint32_t seed : of_a) {
    if (std::ranges::binary_search(of_b, seed)) pairs.emplace_back(seed, seed);
  }
  if (!pairs.empty()) return pairs;
  for (std::size_t k = 0; k < std::min(of_a.size(), of_b.size()); ++k) pairs.emplace_back(of_a[k], of_b[k]);
  return pairs;
}

const std::vector<double>* row_of(const SideValues& values, std::optional<std::uint32_t> seed) {
  for (const auto& [known, row] : values.seeds) {
    if (!seed || known == *seed) return &row;
  }
  return nullptr;
}

/// Adds a value to a cell of a row-major grid that grows by rows.
void add_to(evidence::Cells& cells, std::size_t row, std::size_t columns, std::size_t column, double value) {
  for (auto* grid : {&cells.sums, &cells.counts}) grid->resize(std::max(grid->size(), (row + 1) * columns));
  cells.sums[row * columns + column] += value;
  cells.counts[row * columns + column] += 1;
}

}  // namespace

void PlaceSums::add(const QueryPlace& place, double value) {
  auto& [sum, count] = sums_[{place.identity(), place.layer}];
  sum += value, count += 1;
}

std::size_t PlaceSums::layers() const {
  std::set<std::int64_t> layers;
  for (const auto& [place, sum] : sums_) layers.insert(place.second);
  return layers.size();
}

evidence::Cells PlaceSums::cells() const {
  std::set<std::string> texts;
  for (const auto& [place, sum] : sums_) texts.insert(place.first);
  evidence::Cells out;
  if (sums_.size() != layers() * texts.size()) return out;
  for (const auto& [place, sum] : sums_) out.sums.push_back(sum.first), out.counts.push_back(sum.second);
  return out;
}

PairValues::PairValues(const GroupValues& a, bool a_draws, const GroupValues& b, bool b_draws)
    : seeds_(pair_seeds(a, a_draws, b, b_draws)) {
  a_.seeds = b_.seeds = seeds_.size();
  a_.drawn = a_draws, b_.drawn = b_draws;
}

void PairValues::add(const QueryPlace& place, const SideValues& in_a, const SideValues& in_b) {
  for (std::size_t s = 0; s < seeds_.size(); ++s) {
    const auto* a = row_of(in_a, seeds_[s].first);
    const auto* b = row_of(in_b, seeds_[s].second);
    for (std::size_t q = 0; a && b && q < place.positions.size(); ++q) add(place, q, s, (*a)[q], (*b)[q]);
  }
}

void PairValues::add(const QueryPlace& place, std::size_t query, std::size_t seed, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) {
    ++left_out;
    return;
  }
  ++pairs;
  const std::size_t block =
      blocks_.try_emplace({place.identity(), query / static_cast<std::size_t>(place.per_block)}, blocks_.size())
          .first->second;
  const std::size_t head =
      heads_.try_emplace({place.identity(), place.layer, place.kv_head}, heads_.size()).first->second;
  for (const auto& [side, value] : {std::pair(&a_, a), std::pair(&b_, b)}) {
    add_to(side->blocks, block, seeds_.size(), seed, value);
    add_to(side->heads, head, seeds_.size(), seed, value);
  }
  places_a_.add(place, a), places_b_.add(place, b);
}

evidence::Pair PairValues::pair() {
  a_.places = places_a_.cells(), b_.places = places_b_.cells();
  return {std::move(a_), std::move(b_), std::nullopt};
}

}  // namespace kvbench::compare
