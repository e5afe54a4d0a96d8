// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/measure_table.hpp>
#include <kvbench/sweep/estimate.hpp>
#include <kvbench/sweep/run.hpp>

#include "column_page.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "sweep_tables.hpp"

namespace kvbench::app {
namespace {

using namespace sweep;

struct SweepFlags {
  std::string file, cells, shard;
  std::vector<std::string> traces;
  bool dry_run = false, resume = false, overwrite = false;
  RunFlags run;
};

SweepPlan plan(const SweepFlags& options) {
  config::Sweep sweep = config::read_sweep(options.file);
  for (config::SweepRun& run : sweep.runs) {
    run.request.standalone = options.run.standalone;
    run.request.kv_element = options.run.kv_element;
    if (options.run.device_flag->count() > 0) run.devices.clear();
  }
  if (!options.traces.empty()) use_traces(sweep, options.traces, "--trace");
  return plan_sweep(std::move(sweep), run_options(options.run));
}

/// The cells file: the one that the user names, else one beside the output, else a temporary file (an empty path).
std::string cells_path(const SweepFlags& options) {
  if (!options.cells.empty()) return options.cells;
  const bool to_file =
      !options.run.output.empty() && options.run.output != "-" && !std::filesystem::is_other(options.run.output);
  return to_file ? options.run.output + ".cells" : "";
}

CellsFile open_cells(const SweepFlags& options, const std::string& path) {
  if (path.empty()) return {path, FrameFile::Mode::scratch};
  if (options.overwrite) std::filesystem::remove(path);
  std::error_code none;  // an empty file may be left from an earlier failure
  if (!options.resume && std::filesystem::file_size(path, none) > 0 && !none) {
    throw Error("{}: holds the cells of an earlier run; continue it with --resume, or start again with --overwrite", path);
  }
  return {path, FrameFile::Mode::append};
}

/// Reports on stderr what a resumed sweep finds.
void report_resumed(const CellsFile& cells, const SweepLayout& layout, const Standing& standing) {
  if (cells.torn_bytes() > 0) {
    fmt::print(stderr, "kvbench: {}: {} bytes of an incomplete cell are ignored; the cell is computed again\n", cells.path(),
               cells.torn_bytes());
  }
  const auto old = cells.layout();
  if (!old) return;
  const bool changed = encode_layout(*old) != encode_layout(layout);
  fmt::print(stderr, "kvbench: {}: {} of {} cells are already computed{}\n", cells.path(), standing.finished, standing.cells,
             changed
                 ? "; the sweep file, a trace, the device or kvbench has changed since, and the cells affected are computed "
                   "again"
                 : "");
}

void compute(const SweepFlags& options, const SweepPlan& plan, const SweepLayout& layout, const Shard& shard,
             CellsFile& cells) {
  if (options.resume) report_resumed(cells, layout, standing_of(plan, layout, shard, cells));
  cells.begin(layout);
  ReplayHooks hooks{.stop = &stop_on_signals()};
  Progress progress("heads", options.run.quiet);
  hooks.progress = [&](Index finished, Index total) { progress.show(finished, total); };
  hooks.note = note_to_stderr(options.run.quiet);
  run_sweep(plan, layout, shard, cells, hooks);
}

int run(SweepFlags& options) {
  resolve_device(options.run);
  const bool sharded = !options.shard.empty();
  const Shard shard = sharded ? Shard::parse(options.shard) : Shard{};
  if (sharded && options.cells.empty() && !options.dry_run) {
    throw Error(
        "--shard {}: rows need the cells of all shards; name the cells file of this shard with --cells, and make rows with "
        "`kvbench merge`",
        options.shard);
  }
  if (sharded && !options.run.output.empty())
    throw Error("--shard computes cells, not rows; give -o to `kvbench merge` instead");
  if (!options.cells.empty() && options.cells == options.run.output) {
    throw Error("--cells {}: rows and cells need different files; give -o another name", options.cells);
  }
  const SweepPlan sweep = plan(options);
  if (options.dry_run) {
    print(describe(sweep));
    print(describe(estimate(sweep, shard)));
    return done;
  }
  std::optional<SweepTables> tables;
  if (!sharded)
    tables.emplace(options.file, has_replays(sweep), has_measures(sweep), !sweep.sweep.published.empty(), options.run);
  const std::string path = cells_path(options);
  std::vector<CellsFile> cells;
  cells.push_back(open_cells(options, path));
  const SweepLayout layout = layout_of(sweep);  // reads every trace completely
  try {
    compute(options, sweep, layout, shard, cells.front());
  } catch (const Interrupted&) {
    if (path.empty()) throw;
    fmt::print(stderr, "kvbench: interrupted; {} cells are kept in {}: continue with the same command and --resume\n",
               cells.front().size(), path);
    return was_interrupted;
  }
  report_device_memory(options.run);
  if (sharded) return done;
  const int code = tables->finish(collect(layout, cells, options.run.grain));
  if (options.cells.empty() && !path.empty()) std::filesystem::remove(path);
  return code;
}

}  // namespace

Command add_sweep(CLI::App& app) {
  CLI::App* flags =
      app.add_subcommand("sweep", "Run the replays and measures of a sweep file, such as configs/balancekv-fig2.toml");
  auto options = std::make_shared<SweepFlags>();
  flags->add_flag_callback(
      "--example",
      [] {
        print(config::example_sweep());
        throw CLI::Success();
      },
      "Print a commented example with every key and every method, and exit");
  flags->add_option("file", options->file, "Sweep file (.toml)")->required();
  flags->add_option("--trace", options->traces, "Use these traces instead of those in the file");
  flags->add_flag("--dry-run", options->dry_run,
                  "Check the file, print the plan and an estimate of time, memory and disk space, and exit");
  flags->add_option("--cells", options->cells,
                    "File for the finished cells (default: OUTPUT.cells, removed at the end of the sweep)");
  CLI::Option* resume =
      flags->add_flag("--resume", options->resume,
                      "Continue with the cells in the cells file; the output is identical to that of an uninterrupted sweep");
  flags->add_flag("--overwrite", options->overwrite, "Discard the cells in the cells file")->excludes(resume);
  flags->add_option("--shard", options->shard, "Compute part I/N of the cells, such as 1/8, for `kvbench merge`");
  add_run_flags(flags, options->run);
  add_columns_flag(flags, "Print the columns of the CSV of measures and exit (for those of rows: kvbench replay --columns)",
                   options->run.format, docs_of(measure_columns()));
  return {flags, [options] { return run(*options); }};
}

}  // namespace kvbench::app
