// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::sweep {

/// A run on one trace, with one protocol and device.
struct StepRequest {
  config::TraceChoice trace;
  replay::ReplayRequest request;
  std::string backend;  ///< see RunOptions
};

/// The steps of a run: all combinations of its traces, protocols and devices, the last changing fastest, while the
/// lists that `zip` names advance together. Configurations that `exclude` matches are removed, and steps without any
/// configuration left out. `backend` computes the runs that name no device. Throws Error with its place for an
/// exclusion that matches nothing, for a run of which nothing is left, and for a device that cannot be used.
std::vector<StepRequest> expand(const config::SweepRun& run, const std::string& backend = "cpu");

}  // namespace kvbench::sweep
