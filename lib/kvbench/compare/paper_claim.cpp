// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/paper_claim.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/compare/group_comparer.hpp>
#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>

namespace kvbench::compare {
namespace {

/// mean_a < factor * mean_b, or mean_a > factor * mean_b
struct Inequality {
  double factor;
  bool below;
};

std::vector<Inequality> inequalities(const Relation& r) {
  switch (r.kind) {
    case Relation::Kind::lower:
      return {{1, true}};
    case Relation::Kind::higher:
      return {{1, false}};
    case Relation::Kind::at_least:
      return {{1 - r.within, false}};
    case Relation::Kind::equal:
      return {{1 - r.within, false}, {1 + r.within, true}};
  }
  return {};
}

template <class F>
GroupValues with_values(GroupValues group, F value) {
  for (SideValues& place : group) {
    for (auto& [seed, row] : place.seeds) std::ranges::transform(row, row.begin(), value);
  }
  return group;
}

/// The same places with a number in place of values, rounded as values of replay are. A number draws nothing, so that
/// one row stands for all seeds, and costs nothing.
GroupValues of_number(GroupValues group, double number) {
  for (SideValues& place : group) {
    place.bytes_held = place.bytes_read = NAN;
    if (!place.seeds.empty())
      place.seeds = {{0, std::vector<double>(place.seeds.front().second.size(), static_cast<float>(number))}};
  }
  return group;
}

/// Whether any place has results of both that a method compressed.
bool any_compressed(const GroupValues& a, const GroupValues& b) {
  const auto compressed = [](const SideValues& side) {
    return side.found && side.status == replay::Status::ok && !side.dense;
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (compressed(a[i]) && compressed(b[i])) return true;
  }
  return false;
}

/// Blocks of queries that would decide a comparison; NaN over layers and texts, whose numbers a model and a trace
/// limit.
double units_needed(const Comparison& c) {
  if (c.decided_over_places()) return NAN;
  return units_for_power(c.test.blocks, c.test.difference, (c.test.interval.hi - c.test.interval.lo) / (2 * 1.96));
}

bool belongs(const ComparisonGroup& group, const std::string& run) {
  return run.empty() || group.identity.run.empty() || group.identity.run == run;
}

class ClaimTest {
 public:
  ClaimTest(const PaperClaim& claim, const std::vector<const QueryResults*>& files)
      : claim_(claim), catalogue_(files) {}

  std::vector<RelationResult> run() {
    for (const Relation& relation : claim_.relations) {
      const std::vector<Pair> pairs = pairs_of(relation);
      const auto groups = groups_of(catalogue_.places(), relation.by);
      const int flips = enough_flips(pairs.size() * groups.size() * claim_.relations.size());
      const std::size_t before = results_.size();
      for (const ComparisonGroup& group : groups) {
        if (!belongs(group, relation.run)) continue;
        const GroupComparer comparer(catalogue_, group, claim_.metric, flips);
        for (const Pair& pair : pairs) add(relation, group, comparer, pair);
      }
      if (results_.size() > before || pairs.empty()) continue;
      add_untestable(relation, is_prediction(claim_.metric) && groups.empty()
                                   ? "no text has probes of scored tokens that are all evaluated"
                                   : "no results of both at the same place");
    }
    adjust();
    return std::move(results_);
  }

 private:
  struct Pair {
    Side a, b;
  };

  /// Configurations at equal budgets, or at those that the names state. Where there are none, a result that says why.
  std::vector<Pair> pairs_of(const Relation& relation) {
    const ConfigurationName a = parse_configuration(relation.a, "`a`");
    const bool number = !std::isnan(relation.number);
    const ConfigurationName b = number ? a : parse_configuration(relation.b, "`b`");
    std::vector<Pair> pairs;
    try {
      for (const Side& one : catalogue_.find(a, "`a`")) {
        for (Side other : catalogue_.find(b, "`b`")) {
          if (one.configuration.budget != other.configuration.budget && !b.budget) continue;
          if (number) other.configuration = number_of(relation.number, one.configuration.budget);
          pairs.push_back({one, std::move(other)});
        }
      }
      if (pairs.empty()) add_untestable(relation, "the two have no budget in common");
    } catch (const Error& missing) {
      add_untestable(relation, missing.what());
    }
    return pairs;
  }

  static QueryConfiguration number_of(double number, const Budget& budget) {
    return {.method = fmt::format("{}", number), .params = "", .budget = budget};
  }

  void add_untestable(const Relation& relation, const std::string& why) {
    RelationResult result{.relation = describe(relation)};
    result.comparison.a = relation.a;
    result.comparison.b = std::isnan(relation.number) ? relation.b : fmt::format("{}", relation.number);
    result.comparison.metric = claim_.metric;
    result.comparison.reason = why;
    results_.push_back(std::move(result));
  }

  /// Tokens of the budget at the place with the shortest context.
  Index fewest_tokens(const Budget& budget, const ComparisonGroup& group) const {
    const auto tokens = [&](std::size_t place) { return budget.resolve(catalogue_.places()[place].context_tokens, 1); };
    return tokens(*std::ranges::min_element(group.places, {}, tokens));
  }

  void add(const Relation& relation, const ComparisonGroup& group, const GroupComparer& comparer, const Pair& pair) {
    const GroupValues in_a = comparer.read(pair.a);
    const GroupValues in_b = std::isnan(relation.number) ? comparer.read(pair.b) : of_number(in_a, relation.number);
    if (!found(in_a) && !found(in_b)) return;
    RelationResult result{.relation = describe(relation), .comparison = comparer.compare(pair.a, in_a, pair.b, in_b)};
    if (!any_compressed(in_a, in_b) && result.comparison.outcome != Outcome::skipped) {
      result.comparison.outcome = Outcome::skipped;
      std::string& reason = result.comparison.reason;
      reason = "every layer with results of both is kept exact" + (reason.empty() ? "" : "; " + reason);
    }
    if (const Index tokens = fewest_tokens(pair.a.configuration.budget, group); tokens < relation.tokens) {
      result.comparison.outcome = Outcome::skipped;
      result.comparison.reason =
          fmt::format("a budget of {} tokens is too small, it takes {}: {}", tokens, relation.tokens, relation.below);
    }
    if (!std::isnan(relation.number)) {  // not its rounding to a float
      result.comparison.test.mean_b = relation.number;
      if (result.comparison.decided_over_places()) result.comparison.places_b = relation.number;
    }
    if (result.comparison.outcome != Outcome::skipped) test(relation, comparer, pair, in_a, in_b, result);
    results_.push_back(std::move(result));
  }

  /// The largest p-value of the inequalities if all hold, otherwise that of the first one that does not.
  void test(const Relation& relation, const GroupComparer& comparer, const Pair& pair, const GroupValues& in_a,
            const GroupValues& in_b, RelationResult& result) const {
    const Comparison plain = result.comparison;
    if (plain.is_prediction() && std::min(plain.test.mean_a, plain.test.mean_b) > replay::largest_predicted) {
      result.p_value = 1;  // undecided: neither prediction says how large the damage is, which the comparison states
      return;
    }
    if (!plain.decided_over_places()) {
      if (plain.test.infinite || plain.test.one_seed) return;            // the reason is that of the comparison
      if (plain.some_layers_alone || plain.test.p_least > decided_at) {  // undecided
        result.p_value = 1;
        return;
      }
    }
    result.p_value = 0;
    for (const Inequality& one : inequalities(relation)) {
      const auto scale = [&](double x) { return static_cast<float>(one.factor * x); };
      const Comparison tested =
          one.factor == 1 ? plain : comparer.compare(pair.a, in_a, pair.b, with_values(in_b, scale));
      result.holds = one.below ? tested.a_is_lower() : tested.a_is_higher();
      if (!result.holds || tested.p_value >= result.p_value) {
        result.p_value = tested.p_value;
        result.units_needed = units_needed(tested);
      }
      if (!result.holds) return;
    }
  }

  void adjust() {
    std::vector<double> p_values;
    for (const RelationResult& result : results_) p_values.push_back(result.p_value);
    const std::vector<evidence::Adjusted> adjusted = evidence::adjust(p_values);
    const auto untested = [](double p) { return std::isnan(p); };
    for (std::size_t i = 0; i < results_.size(); ++i) {
      Comparison& comparison = results_[i].comparison;
      comparison.family = results_.size() - static_cast<std::size_t>(std::ranges::count_if(p_values, untested));
      comparison.p_adjusted = adjusted[i].p;
      comparison.set_level(adjusted[i].level);
      results_[i].verdict = claim_verdict(comparison.p_adjusted, results_[i].holds);
    }
  }

  const PaperClaim& claim_;
  Catalogue catalogue_;
  std::vector<RelationResult> results_;
};

std::vector<Verdict> verdicts_of(const ClaimResult& result) {
  std::vector<Verdict> verdicts;
  for (const RelationResult& one : result.results) verdicts.push_back(one.verdict);
  return verdicts;
}

}  // namespace

std::string_view name_of(Relation::Kind kind) {
  constexpr std::string_view names[] = {"lower", "higher", "at least", "equal"};
  return name_in(names, kind);
}

std::string describe(const Relation& r) {
  constexpr std::string_view words[] = {"lower than", "higher than", "at least", "equal to"};
  std::string out = fmt::format("{} {} {}", r.a, words[static_cast<std::size_t>(r.kind)],
                                std::isnan(r.number) ? r.b : fmt::format("{}", r.number));
  if (r.within > 0) out += fmt::format(" within {:.3g} %", 100 * r.within);
  return r.by == Span::all ? out : out + fmt::format(", by {}", name_of(r.by));
}

ClaimResult test_claim(const PaperClaim& claim, const std::vector<const QueryResults*>& files) {
  ClaimResult result{.claim = claim};
  if (!claim.relations.empty()) result.results = ClaimTest(claim, files).run();
  result.verdict = joint_verdict(verdicts_of(result));
  return result;
}

}  // namespace kvbench::compare
