// SPDX-License-Identifier: Apache-2.0
// What is said of a tested claim.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/core/ordered_map.hpp>

namespace kvbench::compare {
namespace {

/// "9 supported, 3 undecided"
std::string count_text(const std::vector<const RelationResult*>& results) {
  std::vector<std::string> parts;
  for (const Verdict verdict : {Verdict::supported, Verdict::contradicted, Verdict::undecided, Verdict::untestable}) {
    const auto count = std::ranges::count(results, verdict, &RelationResult::verdict);
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
  std::vector<const Comparison*> compared;
  for (const RelationResult* one : results)
    if (one->comparison.outcome != Outcome::skipped) compared.push_back(&one->comparison);
  std::string out = fmt::format("  {}: {}", name, count_text(results));
  if (compared.empty()) return out + "\n";
  const auto ratio = [](const Comparison* c) { return c->effect().first; };
  const auto [least, most] = std::ranges::minmax(compared, {}, ratio);
  out += compared.size() == 1 ? fmt::format("; ratio {}", ratio_text(*least))
                              : fmt::format("; ratio {:.3g} to {:.3g}", ratio(least), ratio(most));
  const auto large = std::ranges::count_if(compared, [](const Comparison* c) {
    return c->is_prediction() && std::max(c->test.mean_a, c->test.mean_b) > replay::largest_predicted;
  });
  if (large == 0) return out + "\n";
  return out +
         fmt::format(", {} of {} with a prediction above {} nats\n", large, compared.size(), replay::largest_predicted);
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

/// The verdict; one that joins several relations with different verdicts shows those of each.
std::string headline(const ClaimResult& result, const Parts& parts) {
  const std::string verdict(name_of(result.verdict));
  const bool agree = std::ranges::all_of(
      result.results, [&](const RelationResult& one) { return one.verdict == result.results.front().verdict; });
  if (agree || parts.items().size() < 2) return verdict;
  std::vector<std::string> texts;
  for (const auto& [relation, results] : parts.items())
    texts.push_back(fmt::format("{}: {}", relation, count_text(results)));
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
