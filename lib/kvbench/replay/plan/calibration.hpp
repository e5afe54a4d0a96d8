// SPDX-License-Identifier: Apache-2.0
// The text that methods calibrate on: a prompt of another trace, or another prompt of the evaluated one.
#pragma once

#include <kvbench/replay/plan/plan.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::replay {

/// Opens "TRACE.h5:PROMPT", or "TRACE.h5" for its first prompt. Throws Error as trace::Reader does, and where the trace
/// has no such prompt.
Calibration open_calibration(const std::string& text);

/// Throws Error where the calibration of the request cannot serve this plan for `evaluated`: it comes from a model of
/// another shape, lacks a layer, is the text of an evaluated prompt, or no method of the request calibrates. Reads one
/// head's keys.
void check_calibration(const trace::Reader& evaluated, const ReplayPlan& plan, const ReplayRequest& request);

}  // namespace kvbench::replay
