// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/table.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/report/columns/evaluations.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// Rows over all documents and layers, by task, injection, budget and KL; rows without results last.
std::vector<const eval::EvalRecord*> overall_records(std::span<const eval::EvalRecord> records) {
  std::vector<const eval::EvalRecord*> out;
  std::map<std::string, std::size_t> tasks, budgets;  // numbers in order of appearance
  for (const eval::EvalRecord& r : records) {
    tasks.emplace(r.task, tasks.size()), budgets.emplace(r.budget, budgets.size());
    if (r.document == "all" && !r.layer) out.push_back(&r);
  }
  std::ranges::stable_sort(out, {}, [&](const eval::EvalRecord* r) {
    const bool ok = r->status == replay::Status::ok;
    return std::tuple(tasks.at(r->task), r->injection, !ok, budgets.at(r->budget), ok ? r->kl.mean : 0);
  });
  return out;
}

std::string injection_text(const eval::Injection& injection) {
  return injection.layer < 0 ? std::string(name_of(injection.mode))
                             : fmt::format("{} {}", name_of(injection.mode), injection.layer);
}

std::vector<std::string> figures_of(const eval::EvalRecord& r) {
  const std::string match =
      std::isnan(r.match) ? "-" : fmt::format("{} of {}", short_number(r.match), short_number(r.match_full));
  const bool answers = r.match_verdict != eval::Difference::not_measured;
  return {short_number(r.bytes.of(CostKind::memory) / r.bytes.full),
          short_number(r.kl.mean),
          short_interval(r.kl.lo, r.kl.hi),
          short_number(r.same_top.mean),
          short_number(r.nll_difference.mean),
          short_number(r.key_nll_difference.mean),
          match,
          std::string(name_of(answers ? r.match_verdict : r.nll_verdict))};
}

TextRows brief_evaluations(std::span<const eval::EvalRecord> records) {
  TextRows rows = {{"task", "method", "inject", "budget", "bytes/full", "KL", "95% interval", "top-1", "nll diff",
                    "key nll diff", "match", "verdict"}};
  for (const eval::EvalRecord* r : overall_records(records)) {
    const std::string method = r->params.empty() ? r->method : fmt::format("{} ({})", r->method, r->params);
    rows.push_back({r->task, method, injection_text(r->injection), r->budget});
    if (r->status == replay::Status::ok)
      std::ranges::move(figures_of(*r), std::back_inserter(rows.back()));
    else
      rows.back().push_back(fmt::format("{}: {}", name_of(r->status), r->reason));
  }
  return rows;
}

bool is_left_of_evaluations(std::size_t column) { return column < 3 || column == 11; }

}  // namespace

std::string eval_csv(std::span<const eval::EvalRecord> records, bool times) {
  return csv_of(eval_columns(), records, times);
}

std::string eval_markdown(std::span<const eval::EvalRecord> records) {
  TextRows rows = brief_evaluations(records);
  for (auto& row : rows) row.resize(rows.front().size());
  return markdown_rows(rows, is_left_of_evaluations);
}

std::string eval_terminal(std::span<const eval::EvalRecord> records) {
  return aligned_rows(brief_evaluations(records), is_left_of_evaluations);
}

}  // namespace kvbench::report
