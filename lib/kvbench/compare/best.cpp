// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/best.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::compare {
namespace {

using evidence::Test;
using evidence::Values;

constexpr evidence::Scale error_scale{.least = replay::least_error};

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

/// The errors of a row as tests take them.
Values values_of(const replay::Record& r) {
  Values out{.seeds = r.sums.seeds,
             .drawn = r.seeded,
             .mean = error_of(r),
             .blocks = {r.sums.blocks, r.sums.block_counts},
             .log_blocks = {r.log_sums.blocks, r.log_sums.block_counts},
             .heads = {r.sums.heads, r.sums.head_counts},
             .log_heads = {r.log_sums.heads, r.log_sums.head_counts}};
  for (const replay::PlaceError& place : r.places) {
    out.places.sums.push_back(place.sum);
    out.places.counts.push_back(place.count);
  }
  return out;
}

/// What the places of a row are a sample of; none of a row over one layer.
std::optional<evidence::PlaceSample> sample_of(const replay::Record& r) {
  const std::size_t layers = r.compressed_layers.size();
  if (r.layer || layers == 0 || r.places.size() % layers != 0) return std::nullopt;
  const auto are_units = trace::layers_are_units(r.replayed_layers, layers, r.model_layers);
  if (!are_units) return std::nullopt;
  return evidence::PlaceSample{layers, *are_units, static_cast<std::size_t>(r.model_layers)};
}

bool same_places(const replay::Record& a, const replay::Record& b) {
  const auto place = [](const replay::PlaceError& p) { return std::pair(p.prompt, p.layer); };
  return std::ranges::equal(a.places, b.places, {}, place, place);
}

/// A candidate row of a group, and its errors.
struct Candidate {
  replay::Record* row;
  Values errors;
};

/// The best of the rows with the most answered queries, because means over fewer are not comparable.
std::pair<const Candidate*, bool> best_of(const std::vector<Candidate>& group) {
  double most = 0;
  for (const Candidate& c : group) most = std::max(most, answered(*c.row));
  std::vector<const Candidate*> full;
  std::vector<const Values*> values;
  for (const Candidate& c : group) {
    if (answered(*c.row) == most) full.push_back(&c), values.push_back(&c.errors);
  }
  const evidence::Best best = evidence::best_of(values, sample_of(*full.front()->row), error_scale);
  return {full[best.index], best.over_places};
}

void mark(replay::Record& r, const Test& test) {
  r.diff_best = test.blocks.difference, r.diff_best_interval = test.blocks.interval;
  r.ratio_best = test.effect, r.ratio_best_interval = test.interval;
  r.tested_over = test.tested_over;
  if (test.over != Test::Over::nothing) r.tied = test.p_adjusted > decided_at;
}

void mark_itself(replay::Record& best, bool over_places) {
  best.diff_best = 0, best.tied = true;
  if (best.sums.blocks_with_values() > 1) best.diff_best_interval = {0, 0};
  if (over_places) best.ratio_best = 1, best.ratio_best_interval = {1, 1};
}

void mark(const std::vector<Candidate>& group) {
  const auto [best, by_places] = best_of(group);
  std::vector<const Candidate*> compared;
  std::vector<evidence::Pair> pairs;
  for (const Candidate& c : group) {
    if (&c == best || !evidence::paired(c.errors, best->errors)) continue;
    compared.push_back(&c);
    const bool places = by_places && same_places(*c.row, *best->row);
    pairs.push_back({c.errors, best->errors, places ? sample_of(*best->row) : std::nullopt});
  }
  const std::size_t family = pairs.size() * (pairs.size() + 1) / 2;
  const auto tests = test_group(pairs, {.scale = error_scale, .family = family, .flips = enough_flips(family)});
  const bool over_places = by_places && !std::ranges::count(tests, Test::Over::blocks, &Test::over);
  for (std::size_t i = 0; i < tests.size(); ++i) mark(*compared[i]->row, tests[i]);
  mark_itself(*best->row, over_places);
  compared.push_back(best);
  for (const Candidate* c : compared) {
    c->row->best = label_of({best->row->method, best->row->params, {}});
    if (over_places) c->row->geomean = std::exp(evidence::over_places(c->errors, error_scale));
  }
}

}  // namespace

void mark_best(std::span<replay::Record> records) {
  const auto key = [](const replay::Record& r) {
    return std::tuple(r.run, r.trace, r.sha256, r.prompt, r.layer, r.budget, r.protocol, r.device);
  };
  std::map<decltype(key(records.front())), std::vector<replay::Record*>> groups;
  for (replay::Record& r : records) {
    if (is_candidate(r)) groups[key(r)].push_back(&r);
  }
  for (const auto& [identity, rows] : groups) {
    std::vector<Candidate> group;
    for (replay::Record* r : rows) group.push_back({r, values_of(*r)});
    mark(group);
  }
}

}  // namespace kvbench::compare
