// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/best.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/replay/records/figures.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::compare {
namespace {

using evidence::Test;
using evidence::Values;
using replay::RankingFigure;

evidence::Scale scale_of(const RankingFigure& figure) {
  constexpr double least = replay::least_error;
  return {.least = figure.is_quadratic() ? least * least : least};
}

/// A figure from the mean that is compared.
double figure_from(double compared, const RankingFigure& figure) {
  return figure.squares ? std::sqrt(compared) : compared;
}

/// Number of answered queries per seed.
double answered(const replay::Record& r) {
  const replay::ErrorSums& sums = r.errors().sums;
  return std::accumulate(sums.block_counts.begin(), sums.block_counts.end(), 0.0) / static_cast<double>(sums.seeds);
}

bool is_candidate(const replay::Record& r) {
  return !r.query_head && r.status == replay::Status::ok && !r.dense && r.errors().sums.seeds > 0 &&
         !is_reference(r.method) && !r.calibrated_on_itself() && !r.is_part_of_plan() &&
         !std::isnan(r.of(replay::Metric::rel_err).mean);
}

/// What is tested, with layers of texts or texts as places.
Values values_of(const replay::Record& r, const replay::TestedSums& of, const RankingFigure& figure) {
  const double mean = figure.mean(r);
  Values out{.seeds = of.sums.seeds,
             .drawn = r.seeded,
             .mean = figure.squares ? mean * mean : mean,
             .blocks = {of.sums.blocks, of.sums.block_counts},
             .log_blocks = {of.log_sums.blocks, of.log_sums.block_counts},
             .heads = {of.sums.heads, of.sums.head_counts},
             .log_heads = {of.log_sums.heads, of.log_sums.head_counts}};
  const replay::PlaceError* last = nullptr;
  for (const replay::PlaceError& place : of.places) {
    if (!figure.is_of_heads() && last != nullptr && last->prompt == place.prompt)
      out.places.sums.back() += place.sum, out.places.counts.back() += place.count;
    else
      out.places.sums.push_back(place.sum), out.places.counts.push_back(place.count);
    last = &place;
  }
  return out;
}

/// The queries that a row has seen.
Values seen_by(const replay::Record& r) { return values_of(r, r.errors(), figure_of(replay::figure_named("rel_err"))); }

/// What the places of a row are a sample of; none of a row over one layer.
std::optional<evidence::PlaceSample> sample_of(const replay::Record& r, const RankingFigure& figure) {
  const std::size_t layers = r.compressed_layers.size();
  if (r.layer || layers == 0) return std::nullopt;
  if (!figure.is_of_heads()) return evidence::PlaceSample{};
  if (r.errors().places.size() % layers != 0) return std::nullopt;
  const auto are_units = trace::layers_are_units(r.replayed_layers, layers, r.model_layers);
  if (!are_units) return std::nullopt;
  return evidence::PlaceSample{layers, *are_units, static_cast<std::size_t>(r.model_layers)};
}

bool same_places(const replay::Record& a, const replay::Record& b) {
  const auto place = [](const replay::PlaceError& p) { return std::pair(p.prompt, p.layer); };
  return std::ranges::equal(a.errors().places, b.errors().places, {}, place, place);
}

/// A candidate row of a group, and its figure.
struct Candidate {
  replay::Record* row;
  Values values;
  Index blocks;  ///< with values

  Candidate(replay::Record& r, const replay::TestedSums& tested, const RankingFigure& figure)
      : row(&r), values(values_of(r, tested, figure)), blocks(tested.sums.blocks_with_values()) {}
};

/// Whether two rows have seen the same queries.
bool paired(const Candidate& a, const Candidate& b) {
  return evidence::paired(a.values, b.values) && evidence::paired(seen_by(*a.row), seen_by(*b.row));
}

/// The best of the rows with the most answered queries, because means over fewer are not comparable. A baseline is the
/// best only of baselines: no answer names it, so that ratios to it would have no row.
std::pair<const Candidate*, bool> best_of(const std::vector<Candidate>& group, const RankingFigure& figure) {
  double most = 0;
  for (const Candidate& c : group) most = std::max(most, answered(*c.row));
  std::vector<const Candidate*> full;
  std::vector<const Values*> values;
  const auto is_method = [&](const Candidate& c) { return answered(*c.row) == most && !is_baseline(c.row->method); };
  const bool methods = std::ranges::any_of(group, is_method);
  for (const Candidate& c : group) {
    if (methods ? is_method(c) : answered(*c.row) == most) full.push_back(&c), values.push_back(&c.values);
  }
  const evidence::Best best = evidence::best_of(values, sample_of(*full.front()->row, figure), scale_of(figure));
  return {full[best.index], best.over_places};
}

/// Units of a test, with the layers for which it holds where these are not units and not all.
std::string tested_over(const Test& test, const replay::Record& r, const RankingFigure& figure) {
  const bool alone = std::ssize(r.replayed_layers) < r.model_layers;
  if (figure.is_of_heads() || test.over != Test::Over::places || !alone) return test.tested_over;
  const std::size_t layers = r.compressed_layers.size();
  return test.tested_over + (layers == 1 ? " on this layer" : fmt::format(" on these {} layers", layers));
}

void mark(replay::Record& r, const Test& test, const RankingFigure& figure) {
  r.diff_best = test.blocks.difference, r.diff_best_interval = test.blocks.interval;
  r.ratio_best = figure_from(test.effect, figure);
  r.ratio_best_interval = {figure_from(test.interval.lo, figure), figure_from(test.interval.hi, figure)};
  r.tested_over = tested_over(test, r, figure);
  if (test.over != Test::Over::nothing) r.tied = test.p_adjusted > decided_at;
}

void mark_itself(const Candidate& best, bool over_places) {
  replay::Record& r = *best.row;
  r.diff_best = 0, r.tied = true;
  if (best.blocks > 1) r.diff_best_interval = {0, 0};
  if (over_places) r.ratio_best = 1, r.ratio_best_interval = {1, 1};
}

void mark(const std::vector<Candidate>& group, const RankingFigure& figure) {
  const auto [best, by_places] = best_of(group, figure);
  std::vector<const Candidate*> compared;
  std::vector<evidence::Pair> pairs;
  for (const Candidate& c : group) {
    if (&c == best || !paired(c, *best)) continue;
    compared.push_back(&c);
    const bool places = by_places && same_places(*c.row, *best->row);
    pairs.push_back({c.values, best->values, places ? sample_of(*best->row, figure) : std::nullopt});
  }
  const std::size_t family = pairs.size() * (pairs.size() + 1) / 2;
  const auto tests = test_group(
      pairs,
      {.scale = scale_of(figure), .family = family, .flips = enough_flips(family), .block = figure.block(*best->row)});
  const bool over_places = by_places && !std::ranges::count(tests, Test::Over::blocks, &Test::over);
  for (std::size_t i = 0; i < tests.size(); ++i) mark(*compared[i]->row, tests[i], figure);
  mark_itself(*best, over_places);
  compared.push_back(best);
  for (const Candidate* c : compared) {
    c->row->best = label_of({best->row->method, best->row->params, {}});
    if (over_places)
      c->row->geomean = figure_from(std::exp(evidence::over_places(c->values, scale_of(figure))), figure);
  }
}

/// The first figure that all candidates have which answered as many queries as any; they all have rel_err.
replay::FigureNumber figure_for(const std::vector<replay::Record*>& candidates) {
  double most = 0;
  for (const replay::Record* r : candidates) most = std::max(most, answered(*r));
  return number_of(*std::ranges::find_if(replay::ranking_figures, [&](const RankingFigure& figure) {
    return std::ranges::all_of(
        candidates, [&](const replay::Record* r) { return answered(*r) < most || !std::isnan(figure.mean(*r)); });
  }));
}

}  // namespace

void mark_best(std::span<replay::Record> records, replay::FigureNumber wanted) {
  const auto key = [](const replay::Record& r) {
    return std::tuple(r.run, r.trace, r.sha256, r.prompt, r.layer, r.budget, r.protocol, r.device);
  };
  std::map<decltype(key(records.front())), std::vector<replay::Record*>> groups;
  for (replay::Record& r : records) {
    if (!r.query_head) groups[key(r)].push_back(&r);
  }
  for (const auto& [identity, rows] : groups) {
    std::vector<replay::Record*> candidates;
    std::ranges::copy_if(rows, std::back_inserter(candidates), [](const auto* r) { return is_candidate(*r); });
    const replay::FigureNumber ranked_by = wanted == replay::FigureNumber{} ? figure_for(candidates) : wanted;
    const RankingFigure& figure = figure_of(ranked_by);
    for (replay::Record* r : rows) r->ranked_by = ranked_by;
    std::vector<Candidate> group;
    for (replay::Record* r : candidates) {
      if (!std::isnan(figure.mean(*r)) && !r->is_outside()) group.emplace_back(*r, figure.tested(*r), figure);
    }
    if (!group.empty()) mark(group, figure);
  }
}

}  // namespace kvbench::compare
