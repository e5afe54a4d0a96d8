// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check.hpp>

#include <functional>
#include <set>

namespace kvbench {
namespace {

/// Whether the row counts in the adjustment of its family.
bool tested(const CheckRow& row) { return row.assumptions && !row.vacuous() && !std::isnan(row.p_value); }

void set_failures(CheckRow& row) {
  if (!row.failures || !row.trials || *row.trials == 0) return;
  row.failure_interval = clopper_pearson(*row.failures, *row.trials);
  if (std::isnan(row.p_value) && !std::isnan(row.allowed)) row.p_value = binomial_tail(*row.failures, *row.trials, row.allowed);
}

void adjust(std::span<CheckRow> rows, const std::function<bool(const CheckRow&)>& family) {
  std::vector<CheckRow*> members;
  std::vector<double> p_values;
  for (CheckRow& row : rows) {
    if (!family(row) || !tested(row)) continue;
    members.push_back(&row);
    p_values.push_back(row.p_value);
  }
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t i = 0; i < members.size(); ++i) members[i]->p_adjusted = adjusted[i];
}

Verdict verdict_of(const CheckRow& row, double alpha) {
  if (row.kind == CheckKind::claim) return claim_verdict(row.p_adjusted, row.holds);
  if (!row.assumptions) return Verdict::not_applicable;
  if (row.kind == CheckKind::data) return Verdict::consistent;
  if (row.vacuous()) return Verdict::vacuous;
  if (std::isnan(row.p_adjusted)) return Verdict::not_applicable;
  return row.p_adjusted < alpha ? Verdict::violated : Verdict::consistent;
}

}  // namespace

std::string_view name_of(CheckKind kind) {
  constexpr std::string_view names[] = {"law", "exact", "theorem", "data", "claim", "cost"};
  return names[static_cast<std::size_t>(kind)];
}

void judge(std::span<CheckRow> rows, double alpha) {
  for (CheckRow& row : rows) set_failures(row);
  adjust(rows, [](const CheckRow& row) { return row.kind != CheckKind::claim; });
  std::set<std::string> claims;
  for (const CheckRow& row : rows) {
    if (row.kind == CheckKind::claim) claims.insert(row.claim);
  }
  for (const std::string& claim : claims) {
    adjust(rows, [&](const CheckRow& row) { return row.kind == CheckKind::claim && row.claim == claim; });
  }
  for (CheckRow& row : rows) row.verdict = verdict_of(row, alpha);
}

}  // namespace kvbench
