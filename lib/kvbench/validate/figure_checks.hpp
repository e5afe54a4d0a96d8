// SPDX-License-Identifier: Apache-2.0
// Claims that the sweep files of configs/ state, as checks for `kvbench validate`: judged by the same test on the same
// cells as by the sweep itself.
#pragma once

#include <span>
#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::validate {

struct FigureFile {
  const char *path, *text;  ///< path: configs/NAME.toml
};
/// All of configs/, in alphabetical order.
std::span<const FigureFile> figure_files();

/// A check for each block [[published]] with an `id` and relations. It replays the methods that the relations name,
/// with the settings of their runs, on the whole trace, and adds a row per relation, budget and place. It is untestable
/// where the trace cannot serve the runs. Throws Error as config::read_sweep() does.
std::vector<bounds::Check> figure_checks(const FigureFile& file);
/// Of all files.
std::span<const bounds::Check> figure_checks();

}  // namespace kvbench::validate
