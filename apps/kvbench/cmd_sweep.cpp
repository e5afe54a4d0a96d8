// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/measure_table.hpp>
#include <kvbench/sweep/estimate.hpp>
#include <kvbench/sweep/run.hpp>

#include "../stop_signals.hpp"
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
  const bool to_file = !options.run.output.empty() && options.run.output != "-" && !is_stream(options.run.output);
  return to_file ? options.run.output + ".cells" : "";
}

CellsFile open_cells(const SweepFlags& options, const std::string& path) {
  if (path.empty()) return {path, FrameFile::Mode::scratch};
  if (options.overwrite) return {path, FrameFile::Mode::overwrite};
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

/// Reports how an interrupted sweep continues; removes a cells file in which nothing has been stored.
void explain_interruption(const std::string& path) {
  std::error_code none;
  if (std::filesystem::file_size(path, none) == 0) {
    std::filesystem::remove(path, none);
    fmt::print(stderr, "kvbench: interrupted; no cell was finished\n");
  } else {
    fmt::print(stderr, "kvbench: interrupted; the finished cells are kept in {}: continue with the same command and --resume\n",
               path);
  }
}

void compute(const SweepFlags& options, const SweepPlan& plan, const SweepLayout& layout, const Shard& shard,
             CellsFile& cells) {
  if (options.resume) report_resumed(cells, layout, standing_of(plan, layout, shard, cells));
  cells.begin(layout);
  ReplayHooks hooks{.stop = &stop_requested()};
  Progress progress("heads", options.run.quiet);
  hooks.progress = [&](double finished, Index total) { progress.show(finished, total); };
  hooks.note = note_to_stderr(options.run.quiet);
  run_sweep(plan, layout, shard, cells, hooks);
}

std::vector<NamedFile> inputs_of(const SweepPlan& plan) {
  std::vector<NamedFile> inputs{{"the sweep file", plan.sweep.file}};
  for (const SweepStep& step : plan.steps) {
    inputs.push_back({"the trace", step.reader->path()});
    std::ranges::move(input_files(step.request), std::back_inserter(inputs));
  }
  return inputs;
}

/// Throws Error where a flag is missing or has no meaning beside --shard.
Shard shard_of(const SweepFlags& options) {
  if (options.shard.empty()) return {};
  if (options.cells.empty() && !options.dry_run) {
    throw Error(
        "--shard {}: rows need the cells of all shards; name the cells file of this shard with --cells, and make rows with "
        "`kvbench merge`",
        options.shard);
  }
  if (!options.run.output.empty()) throw Error("--shard computes cells, not rows; give -o to `kvbench merge` instead");
  return Shard::parse(options.shard);
}

int run(SweepFlags& options) {
  resolve_device(options.run);
  const Shard shard = shard_of(options);
  const bool sharded = !options.shard.empty();
  const SweepPlan sweep = plan(options);
  if (options.dry_run) {
    print(describe(sweep));
    print(describe(estimate(sweep, shard)));
    return done;
  }
  const std::string path = cells_path(options);
  std::optional<SweepTables> tables;
  if (sharded) {
    check_distinct(std::vector<NamedFile>{{"--cells", path}}, inputs_of(sweep));
  } else {
    const SweepTables::Parts parts{has_replays(sweep), has_measures(sweep), !sweep.sweep.published.empty()};
    tables.emplace(options.file, parts, options.run, inputs_of(sweep), path);
  }
  std::vector<CellsFile> cells;
  cells.push_back(open_cells(options, path));
  std::optional<AtForcedExit> at_forced_exit;
  if (!path.empty()) at_forced_exit.emplace([&] { explain_interruption(path); });
  const SweepLayout layout = layout_of(sweep);  // reads every trace completely
  try {
    compute(options, sweep, layout, shard, cells.front());
  } catch (const Interrupted&) {
    if (path.empty()) throw;
    explain_interruption(path);
    return was_interrupted;
  }
  report_device_memory(options.run);
  if (sharded) return done;
  at_forced_exit.reset();
  const int code = tables->finish(collect(layout, cells, options.run.grain));
  if (options.cells.empty()) cells.front().remove();
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
