// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/collect.hpp>

#include <algorithm>

#include <kvbench/compare/best.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/sweep/cells_results.hpp>

namespace kvbench::sweep {
namespace {

CellResult not_computed() {
  CellResult cell{.status = Status::skipped, .reason = "not computed"};
  return cell;
}

/// The results of one method of a step on all kv heads.
ReplayResults results_of(const StepLayout& step, std::size_t method, std::span<const CellsFile> files) {
  ReplayResults results{step.frame, step.heads};
  std::erase_if(results.configurations, [&](const Configuration& key) { return key.method != method; });
  for (HeadResult& head : results.heads) head.cells.assign(results.configurations.size(), not_computed());
  for (const CellEntry& entry : step.cells) {
    if (entry.method != method) continue;
    const CellsFile* file = holder(files, entry.key);
    if (file == nullptr) continue;
    CellBlock block = file->cells(step, entry);
    for (std::size_t h = 0; h < block.size(); ++h) results.heads[entry.heads[h]].cells = std::move(block[h]);
  }
  return results;
}

}  // namespace

SweepResults collect(const SweepLayout& layout, std::span<const CellsFile> files, Grain grain) {
  SweepResults all;
  for (const StepLayout& step : layout.steps) {
    std::vector<Record> records;
    for (std::size_t m = 0; m < step.frame.methods.size(); ++m) {
      for (Record& record : summarize(results_of(step, m, files), grain)) {
        record.run = step.run;
        records.push_back(std::move(record));
      }
    }
    put_in_order(records);
    mark_best(records);
    std::ranges::move(records, std::back_inserter(all.records));
    for (const CellEntry& entry : step.measures) {
      const CellsFile* file = holder(files, entry.key);
      if (file == nullptr) continue;
      for (MeasureRow& row : file->measures(entry.key)) {
        row.run = step.run;
        all.measures.push_back(std::move(row));
      }
    }
  }
  for (const PaperClaim& claim : layout.claims) {
    const CellsResults results(layout, files, claim.metric);
    all.claims.push_back(test_claim(claim, {&results}));
  }
  return all;
}

std::vector<std::string> missing_cells(const SweepLayout& layout, std::span<const CellsFile> files) {
  std::vector<std::string> missing;
  for (const StepLayout& step : layout.steps) {
    for (const CellEntry& entry : step.cells) {
      if (holder(files, entry.key) == nullptr) missing.push_back(describe(step, entry, false));
    }
    for (const CellEntry& entry : step.measures) {
      if (holder(files, entry.key) == nullptr) missing.push_back(describe(step, entry, true));
    }
  }
  return missing;
}

bool has_replays(const SweepLayout& layout) {
  return std::ranges::any_of(layout.steps, [](const StepLayout& step) { return !step.cells.empty(); });
}

bool has_measures(const SweepLayout& layout) {
  return std::ranges::any_of(layout.steps, [](const StepLayout& step) { return !step.measures.empty(); });
}

}  // namespace kvbench::sweep
