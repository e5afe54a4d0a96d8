// SPDX-License-Identifier: Apache-2.0
// What a finished sweep consists of. A file of cells begins with its layout, so that rows can be made from the file
// alone.
#pragma once

#include <string>
#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/measures/measures.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::sweep {

struct SweepPlan;

/// A cell, the unit of resumption: one method with all its budgets and seeds on one work item (they share work, on
/// which the last bits of their results depend), or all measures of a kv head.
struct CellEntry {
  std::string key;           ///< of everything that the result depends on: CellInputs or MeasureInputs (key.hpp)
  std::uint32_t method = 0;  ///< index into ReplayFrame::methods; 0 for measures
  std::vector<std::uint32_t> heads;  ///< indices into StepLayout::heads; for measures one into StepLayout::measured
};

/// One run on one trace with one protocol and device.
struct StepLayout {
  std::string run;
  replay::ReplayFrame frame;
  std::vector<replay::HeadResult> heads;  ///< without results
  std::vector<CellEntry> cells;
  std::vector<replay::HeadResult> measured;  ///< heads to measure; place and layer only
  std::vector<CellEntry> measures;
};

struct SweepLayout {
  std::string name, version, commit;
  std::vector<StepLayout> steps;
  std::vector<compare::PaperClaim> claims;  ///< that the rows are to show
};

/// Reads every trace completely, once, to compute its digest.
SweepLayout layout_of(const SweepPlan& plan);

/// "snapkv on layer 3, kv head 0, 1 of prompt '0' of t.h5 (run 'a')"
std::string describe(const StepLayout& step, const CellEntry& cell, bool measure);

}  // namespace kvbench::sweep
