// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <kvbench/config/sweep_run.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/report/measure_table.hpp>

#include "column_page.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "run_flags.hpp"

namespace kvbench::app {
namespace {

using namespace config;

struct Options {
  std::string file;
  std::vector<std::string> traces;
  bool dry_run = false;
  RunFlags run;
};

/// "out.csv" -> "out.measures.csv".
std::string measures_path(const std::string& output) {
  std::filesystem::path path(output);
  return path.replace_extension(".measures" + path.extension().string()).string();
}

/// The measures have columns of their own, so a sweep that replays and measures writes two tables.
struct Outputs {
  Outputs(const SweepPlan& plan, const Options& options) {
    const std::string& path = options.run.output;
    if (has_replays(plan) && has_measures(plan) && (path.empty() || path == "-")) {
      throw Error(
          "{} replays and measures, which makes two tables; name a file with -o OUT.csv (the measures go to "
          "OUT.measures.csv)",
          options.file);
    }
    if (has_replays(plan)) records.emplace(path);
    if (has_measures(plan)) measures.emplace(has_replays(plan) ? measures_path(path) : path);
  }
  std::optional<Output> records, measures;
};

SweepPlan plan(const Options& options) {
  Sweep sweep = read_sweep(options.file);
  for (SweepRun& run : sweep.runs) set_machine(options.run, run.request);
  if (!options.traces.empty()) use_traces(sweep, options.traces);
  return plan_sweep(std::move(sweep));
}

int run(Options& options) {
  resolve_device(options.run);
  const SweepPlan sweep = plan(options);
  if (options.dry_run) {
    print(describe(sweep));
    return done;
  }
  Outputs outputs(sweep, options);
  ReplayHooks hooks{.stop = &stop_on_signals()};
  SweepResults results;
  {
    Progress progress("heads", options.run.quiet);
    hooks.progress = [&](Index finished, Index total) { progress.show(finished, total); };
    hooks.note = note_to_stderr(options.run.quiet);
    results = run_sweep(sweep, options.run.grain, hooks);
  }
  if (outputs.measures) outputs.measures->finish(measures_csv(results.measures));
  report_device_memory(options.run);
  if (!outputs.records) return done;
  const bool to_file = outputs.records->to_file();
  outputs.records->finish(format_records(options.run, results.records, !to_file && stdout_is_terminal()));
  if (to_file && (options.run.summary || stdout_is_terminal())) print(summary_table(results.records));
  return exit_code(results.records);
}

}  // namespace

Command add_sweep(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("sweep", "Run the replays of a sweep file, such as configs/balancekv-fig2.toml");
  auto options = std::make_shared<Options>();
  flags->add_option("file", options->file, "Sweep file (.toml)")->required();
  flags->add_option("--trace", options->traces, "Replay these traces instead of the ones that the file names");
  flags->add_flag("--dry-run", options->dry_run, "Check everything, print the plan, compute nothing");
  add_run_flags(flags, options->run);
  add_columns_flag(flags, "Describe the columns of the measures' CSV and exit (of the rows': kvbench replay --columns)",
                   options->run.format, docs_of(measure_columns()));
  return {flags, [options] { return run(*options); }};
}

}  // namespace kvbench::app
