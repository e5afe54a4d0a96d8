// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/eval/eval_cells.hpp>

#include <apps/kveval/document_run.hpp>

namespace kvbench::kveval {

/// Evaluates the documents of `results` with all configurations of the command line, and sets its cells. Cells that
/// `cells` holds are read from it, those that are computed are added to it. `layers`: those that are captured. Throws
/// as DocumentRun and EvalCells do.
void run_documents(const Machine& machine, const std::vector<int>& layers, eval::EvalCells& cells,
                   eval::EvalResults& results);

}  // namespace kvbench::kveval
