// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/best.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/paired_test.hpp>

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

const replay::Record* best_of(const Group& group) {
  double most = 0;
  for (const replay::Record* r : group) most = std::max(most, answered(*r));
  const replay::Record* best = nullptr;
  for (const replay::Record* r : group) {
    if (answered(*r) == most && (!best || error_of(*r) < error_of(*best))) best = r;
  }
  return best;
}

/// The p-value of a row against the best: by the means or by the logarithms of errors, twice the smaller one. A few
/// huge errors make any difference of means uncertain, but not one of logarithms. Logarithms count only where they
/// agree that the row is worse.
double p_value(const PairedTest& means, const PairedTest& logs) {
  if (means.one_seed) return 1;
  const bool agree = !logs.infinite && !logs.one_seed && logs.difference > 0;
  return agree ? std::min({1.0, 2 * means.p_value, 2 * logs.p_value}) : means.p_value;
}

void mark(const Group& group) {
  const replay::Record& best = *best_of(group);
  std::vector<replay::Record*> tested;
  std::vector<PairedSums> pairs, log_pairs;
  for (replay::Record* r : group) {
    std::optional<PairedSums> sums = pair(*r, best, &replay::Record::sums);
    if (!sums) continue;
    r->best = label_of({best.method, best.params, {}});
    if (r == &best) {
      r->diff_best = 0, r->tied = true;
      if (best.sums.blocks_with_values() > 1) r->diff_best_interval = {0, 0};
    } else {
      tested.push_back(r);
      pairs.push_back(std::move(*sums));
      log_pairs.push_back(*pair(*r, best, &replay::Record::log_sums));
    }
  }
  const std::size_t family = tested.size() * (tested.size() + 1) / 2;
  std::vector<double> p_values;
  for (std::size_t i = 0; i < tested.size(); ++i) {
    const PairedTest test = paired_test(pairs[i], enough_flips(family));
    tested[i]->diff_best = test.difference;
    tested[i]->diff_best_interval = test.interval;
    const bool decidable = static_cast<double>(family) * test.p_least <= decided_at;
    if (!test.infinite && decidable) tested[i]->tied = true;
    p_values.push_back(p_value(test, paired_test(log_pairs[i], enough_flips(family), 0)));
  }
  const std::vector<double> adjusted = holm(p_values, family);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    if (tested[i]->tied && adjusted[i] <= decided_at) tested[i]->tied = false;
  }
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
