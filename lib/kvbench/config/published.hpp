// SPDX-License-Identifier: Apache-2.0
// What a block [[published]] says of results of the runs of its file, in the words of these results.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/config/sweep.hpp>

namespace kvbench::config {

/// Reads a block [[published]]: one claim, or with a list of metrics one for each, whose text and id name it. Its
/// relations must name configurations of `runs`. Throws Error with the place of the fault.
std::vector<Published> read_published(const Value& table, const std::vector<SweepRun>& runs);

/// The configurations of the runs with this name, or of all runs.
std::vector<compare::QueryConfiguration> configurations(const std::vector<SweepRun>& runs, const std::string& name);

/// Parameters of a method, "a=1,file=x", whose files are relative to the folder of the sweep file.
std::string settings_of(const Place& place, const std::string& method, const std::string& params);

/// A row to show, {run = "paper", method = "uniform"}, as columns with their values. Throws Error with the place where
/// no result of the runs can have one of them.
std::vector<std::pair<std::string, std::string>> read_row(const Value& table, const std::vector<SweepRun>& runs);

}  // namespace kvbench::config
