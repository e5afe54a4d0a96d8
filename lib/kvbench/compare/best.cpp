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
using replay::RankBy;

/// Squares of residual_err are compared, and a KL is quadratic in the error.
evidence::Scale scale_of(RankBy figure) {
  constexpr double least = replay::least_error;
  return {.least = figure == RankBy::rel_err ? least : least * least};
}

/// A figure from the mean that is compared.
double figure_of(double compared, RankBy figure) {
  return figure == RankBy::residual_err ? std::sqrt(compared) : compared;
}

/// Number of answered queries per seed.
double answered(const replay::Record& r) {
  const replay::ErrorSums& sums = r.errors.sums;
  return std::accumulate(sums.block_counts.begin(), sums.block_counts.end(), 0.0) / static_cast<double>(sums.seeds);
}

bool is_candidate(const replay::Record& r) {
  return !r.query_head && r.status == replay::Status::ok && !r.dense && r.errors.sums.seeds > 0 &&
         !is_reference(r.method) && !r.calibrated_on_itself() && !r.is_part_of_plan() &&
         !std::isnan(r.mean_of(RankBy::rel_err));
}

void add(double value, evidence::Cells& cells) { cells.sums.push_back(value), cells.counts.push_back(1); }

/// Predicted KL: units are probes, or the probes of layers; texts are what draws of a method are independent in.
Values predictions_of(const replay::Record& r) {
  Values out{.seeds = r.probes.front().seeds, .drawn = r.seeded, .mean = r.kl.mean};
  for (const replay::ProbeSums& text : r.probes) {
    const std::vector<double> units = unit_predictions(text, r.probed);
    const auto number = static_cast<double>(units.size()) / static_cast<double>(out.seeds);
    for (const double value : units) add(value, out.blocks);
    for (std::size_t seed = 0; seed < out.seeds; ++seed) {
      double sum = 0;
      for (std::size_t i = seed; i < units.size(); i += out.seeds) sum += units[i];
      out.heads.sums.push_back(sum), out.heads.counts.push_back(number);
    }
    out.places.sums.push_back(std::accumulate(units.begin(), units.end(), 0.0));
    out.places.counts.push_back(static_cast<double>(units.size()));
  }
  return out;
}

/// rel_err, with layers of texts as places, or the square of residual_err, with texts.
Values errors_of(const replay::Record& r, RankBy figure) {
  const bool squares = figure == RankBy::residual_err;
  const replay::TestedSums& of = squares ? r.squares : r.errors;
  const double mean = r.mean_of(figure);
  Values out{.seeds = of.sums.seeds,
             .drawn = r.seeded,
             .mean = squares ? mean * mean : mean,
             .blocks = {of.sums.blocks, of.sums.block_counts},
             .log_blocks = {of.log_sums.blocks, of.log_sums.block_counts},
             .heads = {of.sums.heads, of.sums.head_counts},
             .log_heads = {of.log_sums.heads, of.log_sums.head_counts}};
  const replay::PlaceError* last = nullptr;
  for (const replay::PlaceError& place : of.places) {
    if (squares && last != nullptr && last->prompt == place.prompt)
      out.places.sums.back() += place.sum, out.places.counts.back() += place.count;
    else
      out.places.sums.push_back(place.sum), out.places.counts.push_back(place.count);
    last = &place;
  }
  return out;
}

/// The figure of a row as tests take it.
Values values_of(const replay::Record& r, RankBy figure) {
  return figure == RankBy::kl_predicted ? predictions_of(r) : errors_of(r, figure);
}

/// What the places of a row are a sample of; none of a row over one layer.
std::optional<evidence::PlaceSample> sample_of(const replay::Record& r, RankBy figure) {
  const std::size_t layers = r.compressed_layers.size();
  if (r.layer || layers == 0) return std::nullopt;
  if (figure != RankBy::rel_err) return evidence::PlaceSample{};
  if (r.errors.places.size() % layers != 0) return std::nullopt;
  const auto are_units = trace::layers_are_units(r.replayed_layers, layers, r.model_layers);
  if (!are_units) return std::nullopt;
  return evidence::PlaceSample{layers, *are_units, static_cast<std::size_t>(r.model_layers)};
}

bool same_places(const replay::Record& a, const replay::Record& b) {
  const auto place = [](const replay::PlaceError& p) { return std::pair(p.prompt, p.layer); };
  return std::ranges::equal(a.errors.places, b.errors.places, {}, place, place);
}

/// A candidate row of a group, and its figure.
struct Candidate {
  replay::Record* row;
  Values values;
};

/// Whether two rows have seen the same queries.
bool paired(const Candidate& a, const Candidate& b, RankBy figure) {
  if (!evidence::paired(a.values, b.values)) return false;
  return figure == RankBy::rel_err ||
         evidence::paired(errors_of(*a.row, RankBy::rel_err), errors_of(*b.row, RankBy::rel_err));
}

/// The best of the rows with the most answered queries, because means over fewer are not comparable.
std::pair<const Candidate*, bool> best_of(const std::vector<Candidate>& group, RankBy figure) {
  double most = 0;
  for (const Candidate& c : group) most = std::max(most, answered(*c.row));
  std::vector<const Candidate*> full;
  std::vector<const Values*> values;
  for (const Candidate& c : group) {
    if (answered(*c.row) == most) full.push_back(&c), values.push_back(&c.values);
  }
  const evidence::Best best = evidence::best_of(values, sample_of(*full.front()->row, figure), scale_of(figure));
  return {full[best.index], best.over_places};
}

/// Units of a test, with the layers for which it holds where these are not units and not all.
std::string tested_over(const Test& test, const replay::Record& r, RankBy figure) {
  const bool alone = std::ssize(r.replayed_layers) < r.model_layers;
  if (figure == RankBy::rel_err || test.over != Test::Over::places || !alone) return test.tested_over;
  const std::size_t layers = r.compressed_layers.size();
  return test.tested_over + (layers == 1 ? " on this layer" : fmt::format(" on these {} layers", layers));
}

void mark(replay::Record& r, const Test& test, RankBy figure) {
  r.diff_best = test.blocks.difference, r.diff_best_interval = test.blocks.interval;
  r.ratio_best = figure_of(test.effect, figure);
  r.ratio_best_interval = {figure_of(test.interval.lo, figure), figure_of(test.interval.hi, figure)};
  r.tested_over = tested_over(test, r, figure);
  if (test.over != Test::Over::nothing) r.tied = test.p_adjusted > decided_at;
}

void mark_itself(const Candidate& best, RankBy figure, bool over_places) {
  replay::Record& r = *best.row;
  r.diff_best = 0, r.tied = true;
  const std::size_t units = figure == RankBy::kl_predicted ? best.values.blocks.counts.size() / best.values.seeds
                                                           : static_cast<std::size_t>(r.blocks);
  if (units > 1) r.diff_best_interval = {0, 0};
  if (over_places) r.ratio_best = 1, r.ratio_best_interval = {1, 1};
}

std::string_view block_of(const replay::Record& r, RankBy figure) {
  if (figure != RankBy::kl_predicted) return "blocks of queries";
  return r.probed.extrapolates ? "probes of layers" : "probes";
}

void mark(const std::vector<Candidate>& group, RankBy figure) {
  const auto [best, by_places] = best_of(group, figure);
  std::vector<const Candidate*> compared;
  std::vector<evidence::Pair> pairs;
  for (const Candidate& c : group) {
    if (&c == best || !paired(c, *best, figure)) continue;
    compared.push_back(&c);
    const bool places = by_places && same_places(*c.row, *best->row);
    pairs.push_back({c.values, best->values, places ? sample_of(*best->row, figure) : std::nullopt});
  }
  const std::size_t family = pairs.size() * (pairs.size() + 1) / 2;
  const auto tests = test_group(pairs, {.scale = scale_of(figure),
                                        .family = family,
                                        .flips = enough_flips(family),
                                        .block = block_of(*best->row, figure)});
  const bool over_places = by_places && !std::ranges::count(tests, Test::Over::blocks, &Test::over);
  for (std::size_t i = 0; i < tests.size(); ++i) mark(*compared[i]->row, tests[i], figure);
  mark_itself(*best, figure, over_places);
  compared.push_back(best);
  for (const Candidate* c : compared) {
    c->row->best = label_of({best->row->method, best->row->params, {}});
    if (over_places) c->row->geomean = figure_of(std::exp(evidence::over_places(c->values, scale_of(figure))), figure);
  }
}

/// The first figure that all candidates have which answered as many queries as any.
RankBy figure_for(const std::vector<replay::Record*>& candidates) {
  double most = 0;
  for (const replay::Record* r : candidates) most = std::max(most, answered(*r));
  for (const RankBy figure : {RankBy::kl_predicted, RankBy::residual_err}) {
    const auto has = [&](const replay::Record* r) { return answered(*r) < most || !std::isnan(r->mean_of(figure)); };
    if (std::ranges::all_of(candidates, has)) return figure;
  }
  return RankBy::rel_err;
}

}  // namespace

void mark_best(std::span<replay::Record> records, RankBy wanted) {
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
    const RankBy figure = wanted == RankBy::automatic ? figure_for(candidates) : wanted;
    for (replay::Record* r : rows) r->ranked_by = figure;
    std::vector<Candidate> group;
    for (replay::Record* r : candidates) {
      if (!std::isnan(r->mean_of(figure)) && !r->is_outside()) group.push_back({r, values_of(*r, figure)});
    }
    if (!group.empty()) mark(group, figure);
  }
}

}  // namespace kvbench::compare
