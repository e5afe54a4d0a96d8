// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/cells_flags.hpp>

#include <filesystem>

#include <fmt/core.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>

#include <apps/common/program.hpp>
#include <apps/common/rows/shared_flags.hpp>

namespace kvbench::app {

using store::FrameFile;

void add_cells_flags(CLI::App* app, CellsFlags& flags) {
  app->add_option("--cells", flags.file,
                  "File for the finished cells (default: OUTPUT.cells, removed when all cells are finished)");
  CLI::Option* resume = app->add_flag(
      "--resume", flags.resume,
      "Continue with the cells in the cells file; the output is identical to that of an uninterrupted run");
  app->add_flag("--overwrite", flags.overwrite, "Discard the cells in the cells file")->excludes(resume);
}

std::string cells_path(const CellsFlags& flags, const std::string& output) {
  if (!flags.file.empty()) return flags.file;
  const bool to_file = !output.empty() && output != "-" && !is_stream(output);
  return to_file ? output + ".cells" : "";
}

FrameFile::Mode cells_mode(const CellsFlags& flags, const std::string& path) {
  require_ending("--cells", path, "cells are no table", ".cells");
  if (path.empty() && (flags.resume || flags.overwrite))
    throw Error("{} has no effect without a file of cells; give -o FILE or --cells FILE",
                flags.resume ? "--resume" : "--overwrite");
  if (path.empty()) return FrameFile::Mode::scratch;
  if (flags.overwrite) return FrameFile::Mode::overwrite;
  std::error_code none;  // an empty file may be left from an earlier failure
  if (!flags.resume && std::filesystem::file_size(path, none) > 0 && !none) {
    throw Error("{}: holds the cells of an earlier run; continue it with --resume, or start again with --overwrite",
                path);
  }
  return FrameFile::Mode::append;
}

void report_torn(const char* program, const std::string& path, std::uint64_t torn_bytes) {
  if (torn_bytes == 0) return;
  say(program,
      fmt::format("{}: {} bytes of an incomplete cell are ignored; the cell is computed again", path, torn_bytes));
}

void explain_interruption(const char* program, const std::string& path) {
  std::error_code none;
  if (path.empty()) {
    say(program, "interrupted; no output was written");
  } else if (std::filesystem::file_size(path, none) == 0 || none) {
    std::filesystem::remove(path, none);
    say(program, "interrupted; no cell was finished");
  } else {
    say(program,
        fmt::format("interrupted; the finished cells are kept in {}: continue with the same command and --resume",
                    path));
  }
}

}  // namespace kvbench::app
