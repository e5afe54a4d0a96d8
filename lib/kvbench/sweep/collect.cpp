// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/collect.hpp>

#include <algorithm>

#include <kvbench/compare/best.hpp>
#include <kvbench/replay/records/results.hpp>
#include <kvbench/sweep/cells_results.hpp>

namespace kvbench::sweep {
namespace {

replay::ConfigurationResult not_computed() {
  replay::ConfigurationResult result{.status = replay::Status::skipped, .reason = "not computed"};
  return result;
}

/// Replaces the results of a step by those of these cells of one method, on all kv heads.
void read_results(const StepLayout& step, const std::vector<const CellEntry*>& cells, std::span<const CellsFile> files,
                  replay::ReplayResults& results) {
  for (replay::HeadResult& head : results.heads) head.results.assign(results.configurations.size(), not_computed());
  for (const CellEntry* entry : cells) {
    const CellsFile* file = holder(files, entry->key);
    if (file == nullptr) continue;
    CellBlock block = file->cells(step, *entry);
    for (std::size_t h = 0; h < block.size(); ++h) results.heads[entry->heads[h]].results = std::move(block[h]);
  }
}

/// The rows of a step, method by method, so that the cells of one method are in memory at a time.
std::vector<replay::Record> records_of(const StepLayout& step, std::span<const CellsFile> files, replay::Grain grain) {
  const std::size_t methods = step.frame.methods.size();
  std::vector<std::vector<replay::Configuration>> configurations(methods);
  for (const replay::Configuration& one : step.frame.configurations) configurations.at(one.method).push_back(one);
  std::vector<std::vector<const CellEntry*>> cells(methods);
  for (const CellEntry& entry : step.cells) cells.at(entry.method).push_back(&entry);
  replay::ReplayResults results{step.frame, step.heads};
  std::vector<replay::Record> records;
  for (std::size_t m = 0; m < methods; ++m) {
    results.configurations = configurations[m];
    read_results(step, cells[m], files, results);
    set_layer_metrics(results.heads);
    for (replay::Record& record : summarize(results, grain)) {
      record.run = step.run;
      records.push_back(std::move(record));
    }
  }
  put_in_order(records);
  return records;
}

}  // namespace

SweepResults collect(const SweepLayout& layout, std::span<const CellsFile> files, replay::Grain grain) {
  SweepResults all;
  for (const StepLayout& step : layout.steps) {
    std::vector<replay::Record> records = records_of(step, files, grain);
    compare::mark_best(records, step.frame.rank_by);
    std::ranges::move(records, std::back_inserter(all.records));
    for (const CellEntry& entry : step.measures) {
      const CellsFile* file = holder(files, entry.key);
      if (file == nullptr) continue;
      for (measures::MeasureRow& row : file->measures(step, entry)) {
        row.run = step.run;
        all.measures.push_back(std::move(row));
      }
    }
  }
  for (const compare::PaperClaim& claim : layout.claims) all.claims.push_back(test_claim(claim, layout, files));
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
