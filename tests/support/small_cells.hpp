// SPDX-License-Identifier: Apache-2.0
// A file of cells that is written by hand, without a trace.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <kvbench/core/version.hpp>
#include <kvbench/sweep/cells_file.hpp>

namespace kvbench::testing {

/// A method at two budgets on two kv heads of two query heads each, with three queries; measures of one head; a claim.
inline sweep::SweepLayout small_layout() {
  sweep::StepLayout step{.run = "a"};
  step.frame.trace = "t.h5", step.frame.sha256 = std::string(64, '0'), step.frame.group = 2;
  step.frame.prompts = {{"p", replay::Protocol::prefill, 40}};
  step.frame.methods = {{"sink", "", false}};
  step.frame.budgets = {Budget::parse("8"), Budget::parse("9")};
  step.frame.configurations = {{0, 0, 0}, {0, 1, 0}};
  for (const Index head : {0, 1}) step.heads.push_back({.place = {0, 0, head}, .layer = 3, .positions = {37, 38, 39}});
  step.cells = {{std::string(64, 'a'), 0, {0, 1}}};
  step.measured = {{.place = {0, 0, 0}, .layer = 3}};
  step.measures = {{std::string(64, 'b'), 0, {0}}};
  compare::PaperClaim claim{.text = "an error"};
  claim.relations = {{.a = "sink@8", .b = "sink@9"}};
  return {.name = "s",
          .version = std::string(version()),
          .commit = std::string(commit()),
          .steps = {step},
          .claims = {claim}};
}

inline sweep::CellBlock small_block() {
  replay::MetricRow row;
  row.fill(NAN);
  row[replay::Metric::rel_err] = 0.5F;
  replay::ConfigurationResult result{.notes = {{"a note", 1}}};
  result.metrics.assign(6, row);
  result.rel_err_fro = {0.5F, 0.5F};
  return {{result, result}, {result, result}};
}

inline std::vector<measures::MeasureRow> small_measures() {
  return {{.trace = "t.h5", .sha256 = std::string(12, '0'), .prompt = "p", .layer = 3, .array = "keys"}};
}

/// The block is stored as every cell of the first step.
inline void write_cells(const std::string& path, const sweep::SweepLayout& layout, const sweep::CellBlock& block) {
  sweep::CellsFile file(path, sweep::FrameFile::Mode::overwrite);
  file.begin(layout);
  for (const sweep::CellEntry& entry : layout.steps[0].cells) file.add(entry.key, block);
  for (const sweep::CellEntry& entry : layout.steps[0].measures) file.add(entry.key, small_measures());
}

}  // namespace kvbench::testing
