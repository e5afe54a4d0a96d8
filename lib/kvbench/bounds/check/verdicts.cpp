// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/verdicts.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>

#include <fmt/format.h>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/core/statistics.hpp>

namespace kvbench::bounds {
namespace {

/// The smallest failure rate of which `trials` trials give a p-value of at most `level` with a probability of 80 %. NaN
/// where no number of failures gives such a p-value.
double detectable_rate(std::int64_t trials, double allowed, double level) {
  level *= 1 + 1e-12;  // a p-value that equals the level may be rounded above it: three failures at 0.1 and level 1e-3
  if (binomial_tail(trials, trials, allowed) > level) return NAN;
  constexpr double power = 0.8;
  std::int64_t least = 1, most = trials;  // failures that give the p-value
  while (least < most) {
    const std::int64_t middle = least + (most - least) / 2;
    if (binomial_tail(middle, trials, allowed) <= level)
      most = middle;
    else
      least = middle + 1;
  }
  double low = 0, high = 1;
  for (int step = 0; step < 40; ++step) {
    const double rate = (low + high) / 2;
    (binomial_tail(least, trials, rate) >= power ? high : low) = rate;
  }
  return high;
}

/// The fewest trials that can give a p-value of at most `level`; allowed < 1.
std::int64_t trials_needed(double allowed, double level) {
  if (allowed <= 0) return 1;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(std::log(level) / std::log(allowed))));
}

bool counts_failures(const CheckRow& row) {
  return row.failures && row.trials && *row.trials > 0 && !std::isnan(row.allowed);
}

/// Whether the row counts in the adjustment of its family.
bool tested(const CheckRow& row) {
  return row.kind != CheckKind::data && row.assumptions && !row.bound_unknown() && !std::isnan(row.p_value);
}

void set_failures(CheckRow& row) {
  if (!counts_failures(row)) return;
  row.failure_interval = clopper_pearson(*row.failures, *row.trials);
  const auto adjusted = [&](double p) { return std::min(1.0, p * static_cast<double>(row.tests)); };
  row.p_least = adjusted(binomial_tail(*row.trials, *row.trials, row.allowed));
  if (std::isnan(row.p_value)) row.p_value = adjusted(binomial_tail(*row.failures, *row.trials, row.allowed));
}

void add_text(CheckRow& row, const std::string& sentence) { row.text += (row.text.empty() ? "" : "; ") + sentence; }

/// The power of a row in a family of this size, and what it would take where it has none.
void set_power(CheckRow& row, std::size_t family, double alpha) {
  if (std::isnan(row.p_least)) row.p_least = 0;
  const auto rows = static_cast<double>(family);
  if (row.kind == CheckKind::claim) {
    if (row.p_least * rows <= decided_at) return;
    const std::size_t least = sign_flip_units(family);
    row.units_needed = std::fmax(row.units_needed, static_cast<double>(least));
    add_text(row, fmt::format("{} units give no p-value below {:.2g}; at least {} are needed for {} rows", row.units,
                              row.p_least, least, family));
    return;
  }
  if (!counts_failures(row)) return;
  const double level = alpha / rows / static_cast<double>(row.tests);
  row.detects = detectable_rate(*row.trials, row.allowed, level);
  if (std::isnan(row.detects))
    add_text(row, fmt::format("{} trials cannot show a violation at this level; at least {} are needed", *row.trials,
                              trials_needed(row.allowed, level)));
}

/// Holm's adjustment over the rows of a family, and the power that it leaves them.
void adjust(std::span<CheckRow> rows, double alpha, const std::function<bool(const CheckRow&)>& family) {
  std::vector<CheckRow*> members;
  std::vector<double> p_values;
  for (CheckRow& row : rows) {
    if (!family(row) || !tested(row)) continue;
    members.push_back(&row);
    p_values.push_back(row.p_value);
  }
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i]->p_adjusted = adjusted[i];
    set_power(*members[i], members.size(), alpha);
  }
}

Verdict verdict_of(const CheckRow& row, double alpha) {
  if (row.kind == CheckKind::data) return row.assumptions ? Verdict::none : Verdict::not_applicable;
  if (row.kind == CheckKind::claim) return claim_verdict(row.p_adjusted, row.holds);
  if (!row.assumptions || row.bound_unknown()) return Verdict::not_applicable;
  if (std::isnan(row.p_adjusted)) return row.vacuous() ? Verdict::vacuous : Verdict::not_applicable;
  if (counts_failures(row) && std::isnan(row.detects)) return Verdict::not_applicable;
  if (row.p_adjusted < alpha) return Verdict::violated;
  if (row.vacuous()) return Verdict::vacuous;
  return row.failure_interval.hi < row.allowed ? Verdict::holds_with_margin : Verdict::holds;
}

}  // namespace

void judge(std::span<CheckRow> rows, double alpha) {
  for (CheckRow& row : rows) {
    set_failures(row);
    if (row.bound_unknown()) add_text(row, "the bound is not a number");
  }
  adjust(rows, alpha, [](const CheckRow& row) { return row.kind != CheckKind::claim; });
  std::set<std::string> checks;
  for (const CheckRow& row : rows) {
    if (row.kind == CheckKind::claim) checks.insert(row.check);
  }
  for (const std::string& check : checks) {
    adjust(rows, alpha, [&](const CheckRow& row) { return row.kind == CheckKind::claim && row.check == check; });
  }
  for (CheckRow& row : rows) row.verdict = verdict_of(row, alpha);
}

}  // namespace kvbench::bounds
