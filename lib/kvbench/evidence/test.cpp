// SPDX-License-Identifier: Apache-2.0
#include <kvbench/evidence/test.hpp>

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include <kvbench/core/verdict.hpp>

namespace kvbench::evidence {
namespace {

/// Extends [rows][from] to [rows][seeds].
std::vector<double> spread(const std::vector<double>& values, std::size_t from, std::size_t seeds) {
  if (from == seeds) return values;
  std::vector<double> out;
  for (const double value : values) out.insert(out.end(), seeds, value);
  return out;
}

std::optional<PairedSums> paired(const Values& a, const Values& b, Cells Values::*blocks, Cells Values::*heads) {
  const std::size_t seeds = std::max(a.seeds, b.seeds);
  if ((a.seeds != seeds && a.seeds != 1) || (b.seeds != seeds && b.seeds != 1)) return std::nullopt;
  const auto of = [&](const Values& v, Cells Values::*cells, std::vector<double> Cells::*field) {
    return spread(v.*cells.*field, v.seeds, seeds);
  };
  PairedSums pairs{.seeds = seeds,
                   .drawn = a.drawn || b.drawn,
                   .a = of(a, blocks, &Cells::sums),
                   .b = of(b, blocks, &Cells::sums),
                   .counts = of(a, blocks, &Cells::counts),
                   .unit_sums = of(a, heads, &Cells::sums),
                   .unit_counts = of(a, heads, &Cells::counts)};
  if (pairs.counts != of(b, blocks, &Cells::counts) || pairs.unit_counts != of(b, heads, &Cells::counts))
    return std::nullopt;
  const std::vector<double> other = of(b, heads, &Cells::sums);
  for (std::size_t i = 0; i < other.size(); ++i) pairs.unit_sums[i] -= other[i];
  return pairs;
}

std::vector<double> on_places(const Values& values, const Scale& scale) {
  std::vector<double> out;
  for (std::size_t p = 0; p < values.places.sums.size(); ++p)
    out.push_back(scale.of(values.places.sums[p] / values.places.counts[p]));
  return out;
}

PlaceTest places_test(const Pair& pair, const Scale& scale) {
  std::vector<double> differences = on_places(pair.a, scale);
  const std::vector<double> reference = on_places(pair.reference, scale);
  if (!pair.sample || differences.empty() || differences.size() != reference.size()) return {};
  for (std::size_t p = 0; p < differences.size(); ++p) differences[p] -= reference[p];
  if (!std::ranges::all_of(differences, [](double x) { return std::isfinite(x); })) return {};
  return place_test(differences, pair.sample->layers, pair.sample->layers_are_units);
}

/// The p-value of the test over blocks.
double over_blocks(const Pair& pair, const PairedTest& means, int flips) {
  if (pair.a.log_blocks.sums.empty()) return means.p_value;
  const PairedTest logs =
      paired_test(*paired(pair.a, pair.reference, &Values::log_blocks, &Values::log_heads), flips, 0);
  const bool agree = !logs.infinite && !logs.one_seed && logs.difference > 0;
  return agree ? std::min({1.0, 2 * means.p_value, 2 * logs.p_value}) : means.p_value;
}

void decide(const Pair& pair, const Design& design, bool over_places, Test& test) {
  if (over_places) {
    if (!test.places.tested()) return;
    test.over = Test::Over::places;
    test.p_value = test.places.p_value;
    test.units = test.places.units();
    test.tested_over = units_of(test.places, pair.sample->model_layers, pair.sample->rows);
    return;
  }
  const PairedTest& blocks = test.blocks;
  const bool decidable = static_cast<double>(design.family) * blocks.p_least <= decided_at;
  if (blocks.blocks == 0 || blocks.infinite || blocks.one_seed || !decidable) return;
  test.over = Test::Over::blocks;
  test.p_value = over_blocks(pair, blocks, design.flips);
  test.units = blocks.blocks;
  test.tested_over = fmt::format("{} {}", blocks.blocks, design.block);
}

}  // namespace

bool PlaceSample::is_sample(std::size_t places) const {
  return (layers_are_units && layers > 1) || places / layers >= fewest_texts;
}

double Scale::of(double mean) const {
  if (!std::isfinite(mean) || (ratios && !(mean > 0))) return NAN;
  return ratios ? std::log(std::max(mean, least)) : mean;
}

std::optional<PairedSums> paired(const Values& a, const Values& b) {
  return paired(a, b, &Values::blocks, &Values::heads);
}

std::vector<Test> test_group(std::span<const Pair> pairs, const Design& design) {
  std::vector<Test> tests;
  for (const Pair& pair : pairs) {
    Test& test = tests.emplace_back(Test{.places = places_test(pair, design.scale)});
    if (pair.a.blocks.sums.empty()) continue;
    test.sums = paired(pair.a, pair.reference);
    test.blocks = paired_test(*test.sums, design.flips);
  }
  const bool over_places = std::ranges::any_of(tests, [](const Test& t) { return t.places.tested(); });
  std::vector<double> p_values;
  for (std::size_t i = 0; i < tests.size(); ++i) {
    decide(pairs[i], design, over_places, tests[i]);
    p_values.push_back(tests[i].p_value);
  }
  const std::vector<Adjusted> adjusted = adjust(p_values, over_places ? 0 : design.family);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    Test& test = tests[i];
    test.p_adjusted = adjusted[i].p;
    if (test.over != Test::Over::places) continue;
    test.effect = design.scale.effect(test.places.mean);
    test.interval = design.scale.effect(test.places.interval_at(adjusted[i].level));
    test.mean_a = design.scale.effect(evidence::over_places(pairs[i].a, design.scale));
    test.mean_reference = design.scale.effect(evidence::over_places(pairs[i].reference, design.scale));
  }
  return tests;
}

std::vector<Adjusted> adjust(std::span<const double> p_values, std::size_t family) {
  std::vector<double> known;
  std::ranges::copy_if(p_values, std::back_inserter(known), [](double p) { return !std::isnan(p); });
  family = std::max(family, known.size());
  const std::vector<double> holms = holm(known, family);
  const auto significant = std::ranges::count_if(holms, [](double p) { return p <= decided_at; });
  std::vector<double> sorted = known;
  std::ranges::sort(sorted);
  std::vector<Adjusted> out;
  std::size_t next = 0;
  for (const double p : p_values) {
    Adjusted& one = out.emplace_back();
    if (std::isnan(p)) continue;
    one.p = holms[next++];
    const auto rank = std::min(std::ranges::lower_bound(sorted, p) - sorted.begin(), significant);
    one.level = 1 - decided_at / static_cast<double>(family - static_cast<std::size_t>(rank));
  }
  return out;
}

double over_places(const Values& values, const Scale& scale) {
  const std::vector<double> means = on_places(values, scale);
  return means.empty() ? NAN : mean(means);
}

Best best_of(std::span<const Values* const> group, const std::optional<PlaceSample>& sample, const Scale& scale) {
  std::optional<std::size_t> of_all, of_places;
  std::vector<double> centres;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Values& values = *group[i];
    const bool is_sample = sample && sample->is_sample(values.places.sums.size());
    centres.push_back(is_sample ? over_places(values, scale) : NAN);
    if (!of_all || scale.better(values.mean, group[*of_all]->mean)) of_all = i;
    if (!std::isnan(centres[i]) && (!of_places || scale.better(centres[i], centres[*of_places]))) of_places = i;
  }
  if (!of_places) return {*of_all, false};
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (std::isnan(centres[i]) && scale.better(group[i]->mean, group[*of_places]->mean)) return {*of_all, false};
  }
  return {*of_places, true};
}

}  // namespace kvbench::evidence
