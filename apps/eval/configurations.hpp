// SPDX-License-Identifier: Apache-2.0
// The configurations of a run: from flags, or from the runs of a sweep file.
#pragma once

#include <span>
#include <vector>

#include <apps/eval/options.hpp>

namespace kvbench::kveval {

/// Every method with every budget and seed of its request, except those excluded; equal ones once. Methods are in the
/// order of their first appearance, each with all its configurations, because these share what the method computes from
/// the context.
std::vector<loop::LoopConfiguration> configurations_of(std::span<const replay::ReplayRequest> requests);

/// Sets what the file Options::sweep gives instead of flags: configurations, layers, protected tokens, dense layers,
/// the treatment of decoded tokens, and whether recall counts protected tokens. Its traces need not exist. Throws Error
/// as config::read_sweep(), and with file and runs where two runs differ in anything but configurations, or none has
/// methods. Where `budgets` are given, only configurations with these are kept; throws Error for one that no run has.
void use_sweep_file(Options& options, std::span<const std::string> budgets);

}  // namespace kvbench::kveval
