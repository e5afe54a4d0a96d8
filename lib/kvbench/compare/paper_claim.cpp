// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/paper_claim.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/compare/group_comparer.hpp>
#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>

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
    if (!std::isnan(relation.number)) result.comparison.test.mean_b = relation.number;  // not its rounding to a float
    if (result.comparison.outcome != Outcome::skipped) test(relation, comparer, pair, in_a, in_b, result);
    results_.push_back(std::move(result));
  }

  /// The largest p-value of the inequalities if all hold, otherwise that of the first one that does not.
  void test(const Relation& relation, const GroupComparer& comparer, const Pair& pair, const GroupValues& in_a,
            const GroupValues& in_b, RelationResult& result) const {
    const Comparison plain = result.comparison;
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

/// "9 supported, 3 undecided"
std::string count_text(const std::vector<Verdict>& verdicts) {
  std::vector<std::string> parts;
  for (const Verdict verdict : {Verdict::supported, Verdict::contradicted, Verdict::undecided, Verdict::untestable}) {
    const auto count = std::ranges::count(verdicts, verdict);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, name_of(verdict)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "0.93 [0.9, 0.96]": the ratio of a result with its interval.
std::string ratio_text(const Comparison& c) {
  const auto [ratio, interval] = c.effect();
  if (std::isnan(interval.lo)) return fmt::format("{:.3g}", ratio);
  return fmt::format("{:.3g} [{:.3g}, {:.3g}]", ratio, interval.lo, interval.hi);
}

/// "balancekv lower than uniform, by layer: 9 supported, 3 undecided; ratio 0.71 to 0.98"
std::string relation_line(const std::string& name, const std::vector<const RelationResult*>& results) {
  std::vector<Verdict> verdicts;
  std::vector<const Comparison*> compared;
  for (const RelationResult* one : results) {
    verdicts.push_back(one->verdict);
    if (one->comparison.outcome != Outcome::skipped) compared.push_back(&one->comparison);
  }
  std::string out = fmt::format("  {}: {}", name, count_text(verdicts));
  if (compared.empty()) return out + "\n";
  if (compared.size() == 1) return out + fmt::format("; ratio {}\n", ratio_text(*compared.front()));
  const auto ratio = [](const Comparison* c) { return c->effect().first; };
  const auto [least, most] = std::ranges::minmax(compared, {}, ratio);
  return out + fmt::format("; ratio {:.3g} to {:.3g}\n", ratio(least), ratio(most));
}

/// " over 10 of 30 layers", where all tests have the same units.
std::string units_text(const ClaimResult& result) {
  std::set<std::string> units;
  for (const RelationResult& one : result.results) units.insert(one.comparison.tested_over);
  units.erase("");
  return units.size() == 1 ? " over " + *units.begin() : "";
}

using Parts = OrderedMap<std::string, std::vector<const RelationResult*>>;

/// The results of each relation; of each run where a relation is tested in several.
Parts parts_of(const ClaimResult& result) {
  Parts parts;
  for (const RelationResult& one : result.results) {
    const bool several = std::ranges::any_of(result.results, [&](const RelationResult& other) {
      return other.relation == one.relation && other.comparison.run != one.comparison.run;
    });
    parts[several ? fmt::format("run {}: {}", one.comparison.run, one.relation) : one.relation].push_back(&one);
  }
  return parts;
}

/// The verdict; one that joins several relations with different verdicts shows how many tests support each of them,
/// such as the variants of a method.
std::string headline(const ClaimResult& result, const Parts& parts) {
  const std::string verdict(name_of(result.verdict));
  const bool agree = std::ranges::all_of(
      result.results, [&](const RelationResult& one) { return one.verdict == result.results.front().verdict; });
  if (agree || parts.items().size() < 2) return verdict;
  std::vector<std::string> texts;
  for (const auto& [relation, results] : parts.items())
    texts.push_back(fmt::format("{}: supported in {} of {} tests", relation,
                                std::ranges::count(results, Verdict::supported, &RelationResult::verdict),
                                results.size()));
  return fmt::format("{} as a whole ({})", verdict, fmt::join(texts, "; "));
}

bool several_traces(const ClaimResult& result) {
  return std::ranges::any_of(result.results, [&](const RelationResult& one) {
    return one.comparison.trace != result.results.front().comparison.trace;
  });
}

/// A line for each result with this verdict, up to three.
std::string detail_lines(const ClaimResult& result, Verdict verdict) {
  constexpr std::size_t shown = 3;
  std::string out;
  std::size_t count = 0;
  for (const RelationResult& one : result.results) {
    if (one.verdict != verdict || ++count > shown) continue;
    const std::string place = test_text(one, several_traces(result));
    out += fmt::format("  {}: {} and {}{}: {}\n", name_of(verdict), one.comparison.a, one.comparison.b,
                       place.empty() ? "" : ", " + place, effect_text(one));
  }
  return count > shown ? out + fmt::format("  and {} more\n", count - shown) : out;
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

std::string test_text(const RelationResult& result, bool with_trace) {
  const Comparison& c = result.comparison;
  if (c.prompt.empty()) return "";
  const std::string other = c.budget_a == c.budget_b ? "" : " and " + c.budget_b.text();
  return fmt::format("{}, budget {}{}", place_text(c, with_trace), c.budget_a, other);
}

std::string effect_text(const RelationResult& result) {
  const Comparison& c = result.comparison;
  if (c.outcome == Outcome::skipped) return c.reason;
  std::string out = "ratio " + ratio_text(c);
  if (!std::isnan(result.p_value)) out += fmt::format(", p = {:.2g} ({:.2g} by Holm)", result.p_value, c.p_adjusted);
  if (!c.tested_over.empty()) out += ", " + c.tested_over;
  if (c.seeds > 0) out += fmt::format(", {} seeds", c.seeds);
  return c.reason.empty() ? out : out + "; " + c.reason;
}

std::string verdict_text(const ClaimResult& result) {
  const Parts parts = parts_of(result);
  std::string out = fmt::format("{}: {}\n", headline(result, parts), result.claim.text);
  if (!result.claim.untestable.empty()) return out + fmt::format("  {}\n", result.claim.untestable);
  for (const auto& [relation, results] : parts.items()) out += relation_line(relation, results);
  out += detail_lines(result, Verdict::contradicted) + detail_lines(result, Verdict::untestable);
  const std::size_t tests = result.results.size();
  return out + fmt::format("  {} test{} of {}{}, Holm at {:.2g} %\n", tests, tests == 1 ? "" : "s",
                           result.claim.metric.name, units_text(result), 100 * decided_at);
}

std::string verdict_text(std::span<const ClaimResult> results) {
  std::string out;
  for (const ClaimResult& result : results) out += verdict_text(result);
  return out;
}

}  // namespace kvbench::compare
