// SPDX-License-Identifier: Apache-2.0
// The file of finished cells, from which a long run continues: the same for sweeps and for kveval.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include <kvbench/store/frame_file.hpp>

namespace kvbench::app {

struct CellsFlags {
  std::string file;
  bool resume = false, overwrite = false;
};
void add_cells_flags(CLI::App* app, CellsFlags& flags);

/// The file that the user names, else one beside the output, else "": a temporary file.
std::string cells_path(const CellsFlags& flags, const std::string& output);

/// How to open the file. Throws Error where it holds cells of an earlier run, and neither flag says what to do with
/// them.
store::FrameFile::Mode cells_mode(const CellsFlags& flags, const std::string& path);

/// Reports on stderr what a run that continues finds beside finished cells.
void report_torn(const char* program, const std::string& path, std::uint64_t torn_bytes);

/// Reports how an interrupted run continues; removes a cells file in which nothing has been stored.
void explain_interruption(const char* program, const std::string& path);

}  // namespace kvbench::app
