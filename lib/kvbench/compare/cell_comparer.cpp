// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/cell_comparer.hpp>

#include <cmath>
#include <map>
#include <tuple>

#include <kvbench/core/error.hpp>

namespace kvbench {
namespace {

using Seeds = std::vector<std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>>;

Comparison identity_of(const QueryPlace& place, Span span) {
  Comparison c;
  c.run = place.run, c.trace = place.trace, c.sha256 = place.sha256, c.model = place.model, c.protocol = place.protocol;
  c.prompt = span == Span::all ? "all" : place.prompt;
  if (span <= Span::head) c.layer = place.layer;
  if (span == Span::head) c.query_head = place.query_head;
  return c;
}

std::vector<std::uint32_t> seeds_of(const SideCell& cell) {
  std::vector<std::uint32_t> seeds;
  for (const SideValues& values : cell) {
    for (const auto& [seed, row] : values.seeds) {
      if (std::ranges::find(seeds, seed) == seeds.end()) seeds.push_back(seed);
    }
  }
  std::ranges::sort(seeds);
  return seeds;
}

/// Which seed of one side stands beside which of the other; none: the side has one value.
Seeds pair_seeds(const SideCell& a, bool a_draws, const SideCell& b, bool b_draws) {
  Seeds pairs;
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

const std::vector<float>* row_of(const SideValues& values, std::optional<std::uint32_t> seed) {
  for (const auto& [known, row] : values.seeds) {
    if (!seed || known == *seed) return &row;
  }
  return nullptr;
}

void add_sentence(std::string& text, const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; }

/// Sums by block and seed of both sides over the pairs that have both values, and their numbers.
class PairSums {
 public:
  explicit PairSums(const Seeds& seeds) : seeds_(seeds) {}

  void add(const QueryPlace& place, const SideValues& in_a, const SideValues& in_b) {
    for (std::size_t s = 0; s < seeds_.size(); ++s) {
      const auto* a = row_of(in_a, seeds_[s].first);
      const auto* b = row_of(in_b, seeds_[s].second);
      for (std::size_t q = 0; a && b && q < place.positions.size(); ++q) add(place, q, s, (*a)[q], (*b)[q]);
    }
  }
  PairedSums sums(bool drawn) {
    sums_.seeds = seeds_.size();
    sums_.drawn = drawn;
    return std::move(sums_);
  }
  Index pairs = 0, left_out = 0;

 private:
  void add(const QueryPlace& place, std::size_t query, std::size_t seed, double a, double b) {
    if (std::isnan(a) || std::isnan(b)) {
      ++left_out;
      return;
    }
    const std::size_t row = rows_.try_emplace({place.prompt, query / queries_a_block}, rows_.size()).first->second;
    const std::size_t at = row * seeds_.size() + seed;
    for (auto* grid : {&sums_.a, &sums_.b, &sums_.counts}) grid->resize(std::max(grid->size(), (row + 1) * seeds_.size()));
    sums_.a[at] += a, sums_.b[at] += b, sums_.counts[at] += 1;
    const std::size_t unit = units_.try_emplace({place.prompt, place.layer, place.kv_head}, units_.size()).first->second;
    for (auto* grid : {&sums_.unit_sums, &sums_.unit_counts}) {
      grid->resize(std::max(grid->size(), (unit + 1) * seeds_.size()));
    }
    sums_.unit_sums[unit * seeds_.size() + seed] += a - b;
    sums_.unit_counts[unit * seeds_.size() + seed] += 1;
    ++pairs;
  }

  const Seeds& seeds_;
  std::map<std::pair<std::string, std::size_t>, std::size_t> rows_;            // prompt and block
  std::map<std::tuple<std::string, std::int64_t, Index>, std::size_t> units_;  // kv heads: each draws for itself
  PairedSums sums_;
};

/// What is wrong with a side at a place, or "".
std::string fault_of(const SideValues& values, const std::string& label) {
  if (!values.found) return fmt::format("{} has no rows here", label);
  return values.status == Status::ok ? "" : fmt::format("{} {}: {}", label, name_of(values.status), values.reason);
}

void explain(Comparison& out) {
  const PairedTest& t = out.test;
  if (t.infinite) add_sentence(out.reason, "infinite values: the means do not compare");
  if (t.one_seed) add_sentence(out.reason, "one seed does not show how draws vary: replay with more --seeds");
  if (t.p_least > decided_at && !t.one_seed) {
    add_sentence(out.reason, fmt::format("{} block{} of {} queries: no p-value below {:.2g} is possible", t.blocks,
                                         t.blocks == 1 ? "" : "s", queries_a_block, t.p_least));
  }
}

}  // namespace

std::vector<ComparisonCell> cells_of(const std::vector<QueryPlace>& places, Span span) {
  std::vector<ComparisonCell> cells;
  const auto key = [](const Comparison& c) { return std::tie(c.run, c.sha256, c.prompt, c.protocol, c.layer, c.query_head); };
  for (std::size_t p = 0; p < places.size(); ++p) {
    Comparison identity = identity_of(places[p], span);
    auto cell = std::ranges::find_if(cells, [&](const ComparisonCell& known) { return key(known.identity) == key(identity); });
    if (cell == cells.end()) cell = cells.insert(cell, {std::move(identity), {}});
    cell->places.push_back(p);
  }
  return cells;
}

SideCell CellComparer::read(const Side& side) const {
  SideCell out;
  for (const std::size_t place : cell_.places) {
    out.push_back(catalogue_.read(side, place));
    if (metric_ != Metric::log_z_err) continue;
    for (auto& [seed, row] : out.back().seeds) {
      for (float& value : row) value = std::abs(value);
    }
  }
  return out;
}

/// Places where both are ok; where that holds for some, dense ones are left out as rows over layers leave them out. A failure
/// anywhere, or nothing left, leaves the reason in `out`.
std::vector<std::size_t> CellComparer::usable_places(const SideCell& in_a, const SideCell& in_b, Comparison& out) const {
  std::vector<std::size_t> ok, sparse;
  std::string why;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < cell_.places.size(); ++i) {
    std::string fault = fault_of(in_a[i], out.a);
    if (const std::string other = fault_of(in_b[i], out.b); !other.empty()) add_sentence(fault, other);
    if (in_a[i].status == Status::failed || in_b[i].status == Status::failed) {
      out.reason = fault;
      return {};
    }
    if (fault.empty()) {
      ok.push_back(i);
      if (!in_a[i].dense && !in_b[i].dense) sparse.push_back(i);
    } else if (bad++ == 0) {
      why = fault;
    }
  }
  if (bad > 0) out.reason = ok.empty() ? why : fmt::format("without {} of {} query heads: {}", bad, cell_.places.size(), why);
  return sparse.empty() ? ok : sparse;
}

Comparison CellComparer::compare(const Side& a, const SideCell& in_a, const Side& b, const SideCell& in_b) const {
  Comparison out = cell_.identity;
  out.metric = metric_;
  out.a = a.label(), out.budget_a = a.configuration.budget, out.b = b.label(), out.budget_b = b.configuration.budget;
  const std::vector<std::size_t> usable = usable_places(in_a, in_b, out);
  if (usable.empty()) return out;
  const bool a_draws = a.configuration.seeded, b_draws = b.configuration.seeded;
  const Seeds seeds = pair_seeds(in_a, a_draws, in_b, b_draws);
  PairSums sums(seeds);
  for (const std::size_t i : usable) sums.add(catalogue_.places()[cell_.places[i]], in_a[i], in_b[i]);
  out.seeds = a_draws || b_draws ? seeds.size() : 0;
  out.pairs = sums.pairs, out.left_out = sums.left_out;
  if (out.pairs == 0) {
    out.reason = fmt::format("{} applies to no query of both", name_of(metric_));
    return out;
  }
  out.test = paired_test(sums.sums(a_draws || b_draws), flips_);
  out.outcome = Outcome::tied;  // until p-values are adjusted
  explain(out);
  return out;
}

}  // namespace kvbench
