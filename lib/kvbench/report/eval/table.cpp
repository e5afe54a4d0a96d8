// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/table.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// Rows over all documents and layers, by task, injection, budget and KL; rows without results last.
std::vector<const eval::EvalRecord*> overall_records(std::span<const eval::EvalRecord> records) {
  std::vector<const eval::EvalRecord*> out;
  std::map<std::string, std::size_t> tasks;  // numbers in order of appearance
  std::map<Budget, std::size_t> budgets;
  for (const eval::EvalRecord& r : records) {
    tasks.emplace(r.task, tasks.size()), budgets.emplace(r.budget, budgets.size());
    if (r.document == "all" && !r.layer) out.push_back(&r);
  }
  std::ranges::stable_sort(out, {}, [&](const eval::EvalRecord* r) {
    const bool ok = r->status == replay::Status::ok;
    return std::tuple(tasks.at(r->task), r->injection, !ok, budgets.at(r->budget),
                      ok ? r->of(eval::damage("kl_mean")).mean : 0);
  });
  return out;
}

std::string injection_text(const eval::Injection& injection) {
  return injection.layer < 0 ? std::string(name_of(injection.mode))
                             : fmt::format("{} {}", name_of(injection.mode), injection.layer);
}

std::vector<TableCell> figures_of(const eval::EvalRecord& r) {
  const std::string match = std::isnan(r.of(eval::damage("match")).mean)
                                ? "-"
                                : fmt::format("{} of {}", short_number(r.of(eval::damage("match")).mean),
                                              short_number(r.of(eval::damage("match_full")).mean));
  const bool answers = r.match_verdict != eval::Difference::not_measured;
  return {short_number(r.bytes.of(CostKind::memory) / r.bytes.full),
          short_number(r.of(eval::damage("kl_mean")).mean),
          short_interval(r.of(eval::damage("kl_mean")).lo, r.of(eval::damage("kl_mean")).hi),
          short_number(r.of(eval::damage("top1")).mean),
          short_number(r.of(eval::damage("nll_diff")).mean),
          short_number(r.of(eval::damage("key_nll_diff")).mean),
          match,
          std::string(name_of(answers ? r.match_verdict : r.nll_verdict))};
}

}  // namespace

DocTable overall_table(std::span<const eval::EvalRecord> records) {
  DocTable table{.columns = {{"task"},
                             {"method"},
                             {"inject"},
                             {"budget", true},
                             {"bytes/full", true},
                             {"KL", true},
                             {"95% interval", true},
                             {"top-1", true},
                             {"nll diff", true},
                             {"key nll diff", true},
                             {"match", true},
                             {"verdict"}}};
  for (const eval::EvalRecord* r : overall_records(records)) {
    const std::string method = r->params.empty() ? r->method : fmt::format("{} ({})", r->method, r->params);
    auto& row = table.rows.emplace_back(
        std::vector<TableCell>{r->task, method, injection_text(r->injection), r->budget.text()});
    if (r->status == replay::Status::ok)
      std::ranges::move(figures_of(*r), std::back_inserter(row));
    else
      row.emplace_back(fmt::format("{}: {}", name_of(r->status), r->reason));
  }
  return table;
}

std::vector<Block> brief_evaluation(const std::vector<std::string>& answers, std::span<const eval::EvalRecord> records,
                                    const std::string& rest) {
  constexpr std::size_t most = 5;
  std::vector<Block> blocks;
  for (const std::string& answer : answers) blocks.emplace_back(Paragraph{answer});
  DocTable table{.columns = {{"method"}, {"KL", true}, {"95% interval", true}, {"top-1", true}, {"bytes/full", true}}};
  const std::vector<const eval::EvalRecord*> rows = overall_records(records);
  for (const eval::EvalRecord* r : rows) {
    const bool first = r->task == rows.front()->task && r->budget == rows.front()->budget;
    if (!first || r->status != replay::Status::ok || table.rows.size() == most) continue;
    table.rows.push_back({r->params.empty() ? r->method : fmt::format("{} ({})", r->method, r->params),
                          short_number(r->of(eval::damage("kl_mean")).mean),
                          short_interval(r->of(eval::damage("kl_mean")).lo, r->of(eval::damage("kl_mean")).hi),
                          short_number(r->of(eval::damage("top1")).mean),
                          short_number(r->bytes.of(CostKind::memory) / r->bytes.full)});
  }
  if (!table.rows.empty()) blocks.insert(blocks.begin() + (answers.empty() ? 0 : 1), std::move(table));
  return shortened(std::move(blocks), [&](std::size_t shown) {
    return rows.size() == shown
               ? ""
               : fmt::format("Not shown: {} of {} rows; see {}.", rows.size() - shown, rows.size(), rest);
  });
}

}  // namespace kvbench::report
