// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::sweep {

/// A run on one trace, with one protocol and device.
struct Pass {
  config::TraceChoice trace;
  ReplayRequest request;
  std::string backend;  ///< of RunOptions
};

/// The passes of a run: all combinations of its traces, protocols and devices, the last changing fastest, with the lists that
/// `zip` names advancing together; less the configurations that `exclude` names. Passes that this leaves empty are left out.
/// `backend` computes the runs that name no device. Throws Error with the place where an exclusion names what the run does not
/// have, where nothing is left, and where a device cannot be had.
std::vector<Pass> expand(const config::SweepRun& run, const std::string& backend = "cpu");

}  // namespace kvbench::sweep
