// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/best.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/paired_test.hpp>
#include <kvbench/core/place_test.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::compare {
namespace {

using Group = std::vector<replay::Record*>;

double error_of(const replay::Record& r) { return r.of(replay::metric("rel_err")).mean; }

/// Number of answered queries per seed.
double answered(const replay::Record& r) {
  return std::accumulate(r.sums.block_counts.begin(), r.sums.block_counts.end(), 0.0) /
         static_cast<double>(r.sums.seeds);
}

bool is_candidate(const replay::Record& r) {
  return !r.query_head && r.status == replay::Status::ok && !r.dense && r.sums.seeds > 0 && !is_reference(r.method) &&
         !r.has_hindsight() && !std::isnan(error_of(r));
}

/// Extends [rows][from] to [rows][seeds]; a row with one value repeats it for every seed.
std::vector<double> spread(const std::vector<double>& values, std::size_t from, std::size_t seeds) {
  if (from == seeds) return values;
  std::vector<double> out;
  for (const double value : values) out.insert(out.end(), seeds, value);
  return out;
}

/// The paired sums of two rows, of errors or of their logarithms; none where the rows answered different queries.
std::optional<PairedSums> pair(const replay::Record& a, const replay::Record& b,
                               replay::ErrorSums replay::Record::*sums) {
  const std::size_t seeds = std::max(a.sums.seeds, b.sums.seeds);
  if ((a.sums.seeds != seeds && a.sums.seeds != 1) || (b.sums.seeds != seeds && b.sums.seeds != 1)) return std::nullopt;
  const auto of = [&](const replay::Record& r, std::vector<double> replay::ErrorSums::*field) {
    return spread(r.*sums.*field, (r.*sums).seeds, seeds);
  };
  PairedSums pairs{.seeds = seeds,
                   .drawn = a.seeded || b.seeded,
                   .a = of(a, &replay::ErrorSums::blocks),
                   .b = of(b, &replay::ErrorSums::blocks),
                   .counts = of(a, &replay::ErrorSums::block_counts),
                   .unit_sums = of(a, &replay::ErrorSums::heads),
                   .unit_counts = of(a, &replay::ErrorSums::head_counts)};
  if (pairs.counts != of(b, &replay::ErrorSums::block_counts) ||
      pairs.unit_counts != of(b, &replay::ErrorSums::head_counts))
    return std::nullopt;
  const std::vector<double> other = of(b, &replay::ErrorSums::heads);
  for (std::size_t i = 0; i < other.size(); ++i) pairs.unit_sums[i] -= other[i];
  return pairs;
}

replay::Record* best_of(const Group& group) {
  double most = 0;
  for (const replay::Record* r : group) most = std::max(most, answered(*r));
  replay::Record* best = nullptr;
  for (replay::Record* r : group) {
    if (answered(*r) == most && (!best || error_of(*r) < error_of(*best))) best = r;
  }
  return best;
}

/// The p-value of a row against the best: by the means or by the logarithms of errors, twice the smaller one. A few
/// huge errors make any difference of means uncertain, but not one of logarithms. Logarithms count only where they
/// agree that the row is worse.
double p_value(const PairedTest& means, const PairedTest& logs) {
  const bool agree = !logs.infinite && !logs.one_seed && logs.difference > 0;
  return agree ? std::min({1.0, 2 * means.p_value, 2 * logs.p_value}) : means.p_value;
}

/// The test of log(error of a row / error of the best) over layers and texts. Rows over one layer have none, nor do
/// exact ones, where a ratio would be one to the floor of log_error().
PlaceTest over_places(const replay::Record& r, const replay::Record& best) {
  const auto place = [](const replay::PlaceError& p) { return std::pair(p.prompt, p.layer); };
  const std::size_t layers = best.compressed_layers.size();
  const bool grid = layers > 0 && r.places.size() % layers == 0;
  if (r.layer || !grid || !std::ranges::equal(r.places, best.places, {}, place, place)) return {};
  const auto are_units = trace::layers_are_units(best.replayed_layers, layers, best.model_layers);
  if (!are_units) return {};
  const auto is_exact = [](const replay::PlaceError& p) { return p.sum == 0; };
  if (std::ranges::any_of(r.places, is_exact) || std::ranges::any_of(best.places, is_exact)) return {};
  std::vector<double> differences;
  for (std::size_t i = 0; i < r.places.size(); ++i)
    differences.push_back(replay::log_error(r.places[i].mean()) - replay::log_error(best.places[i].mean()));
  return place_test(differences, layers, *are_units);
}

/// Marks a row that was compared with the best, except for `tied`. Returns its p-value, or none where these data cannot
/// show any difference between `family` pairs. Over layers and texts that are a sample of others, places are the units
/// of the test, otherwise blocks of queries.
std::optional<double> test(replay::Record& r, const replay::Record& best, std::size_t family) {
  const int flips = enough_flips(family);
  const PairedTest blocks = paired_test(*pair(r, best, &replay::Record::sums), flips);
  r.best = label_of({best.method, best.params, {}});
  r.diff_best = blocks.difference;
  r.diff_best_interval = blocks.interval;
  if (blocks.infinite) return std::nullopt;
  if (const PlaceTest places = over_places(r, best); places.tested()) {
    r.ratio_best = std::exp(places.mean);
    r.ratio_best_interval = {std::exp(places.interval.lo), std::exp(places.interval.hi)};
    r.tested_over = units_of(places, static_cast<std::size_t>(best.model_layers));
    return places.mean > 0 ? places.p_value : 1;
  }
  const bool decidable = static_cast<double>(family) * blocks.p_least <= decided_at;
  if (!decidable || blocks.one_seed) return std::nullopt;
  r.tested_over = fmt::format("{} blocks of queries", blocks.blocks);
  return p_value(blocks, paired_test(*pair(r, best, &replay::Record::log_sums), flips, 0));
}

void mark_itself(replay::Record& best) {
  best.best = label_of({best.method, best.params, {}});
  best.diff_best = 0, best.tied = true;
  if (best.sums.blocks_with_values() > 1) best.diff_best_interval = {0, 0};
  if (over_places(best, best).tested()) best.ratio_best = 1, best.ratio_best_interval = {1, 1};
}

void mark(const Group& group) {
  replay::Record& best = *best_of(group);
  std::vector<replay::Record*> compared, tested;
  for (replay::Record* r : group) {
    if (r != &best && pair(*r, best, &replay::Record::sums)) compared.push_back(r);
  }
  const std::size_t family = compared.size() * (compared.size() + 1) / 2;
  mark_itself(best);
  std::vector<double> p_values;
  for (replay::Record* r : compared) {
    const std::optional<double> p = test(*r, best, family);
    if (!p) continue;
    tested.push_back(r);
    p_values.push_back(*p);
  }
  const bool over_places = std::ranges::any_of(tested, [](auto* r) { return !std::isnan(r->ratio_best); });
  const std::vector<double> adjusted = holm(p_values, over_places ? tested.size() : family);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->tied = adjusted[i] > decided_at;
}

}  // namespace

void mark_best(std::span<replay::Record> records) {
  const auto key = [](const replay::Record& r) {
    return std::tuple(r.run, r.trace, r.sha256, r.prompt, r.layer, r.budget, r.protocol, r.device);
  };
  std::map<decltype(key(records.front())), Group> groups;
  for (replay::Record& r : records) {
    if (is_candidate(r)) groups[key(r)].push_back(&r);
  }
  for (const auto& [identity, group] : groups) mark(group);
}

}  // namespace kvbench::compare
