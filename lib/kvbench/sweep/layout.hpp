// SPDX-License-Identifier: Apache-2.0
// What a finished sweep consists of. A file of cells begins with it, so that rows can be made from the file alone.
#pragma once

#include <string>
#include <vector>

#include <kvbench/bounds/measures.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::sweep {

struct SweepPlan;

/// What is computed, stored, skipped and sharded as one: a method with all its budgets and seeds on the heads of a unit (they
/// share work, and the last bits of their rows depend on it), or the measures of a head.
struct CellEntry {
  /// SHA-256 of all that the result depends on: kvbench's version and commit, the trace's digest, prompt, layer, heads, method,
  /// parameters, budgets, seeds, protocol, device and what else the run sets.
  std::string key;
  std::uint32_t method = 0;          ///< index into ReplayFrame::methods; of a measure 0
  std::vector<std::uint32_t> heads;  ///< indices into StepLayout::heads, or one into StepLayout::measured
};

/// One run on one trace with one protocol and device.
struct StepLayout {
  std::string run;
  ReplayFrame frame;
  std::vector<HeadResult> heads;  ///< without cells
  std::vector<CellEntry> cells;
  std::vector<HeadResult> measured;  ///< heads that are measured; place and layer only
  std::vector<CellEntry> measures;
};

struct SweepLayout {
  std::string name, version, commit;
  std::vector<StepLayout> steps;
};

/// Reads the whole of each trace once, for its digest.
SweepLayout layout_of(const SweepPlan& plan);

/// "method snapkv on layer 3, kv head 0, 1 of prompt '0' of t.h5 (run 'a')".
std::string describe(const StepLayout& step, const CellEntry& cell, bool measure);

}  // namespace kvbench::sweep
