// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/sweep/estimate.hpp>
#include <kvbench/sweep/run.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/cells_flags.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/progress.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/own_program.hpp>
#include <apps/kvbench/sweep_tables.hpp>

namespace kvbench::app {
namespace {

using namespace sweep;

struct SweepFlags {
  std::string file, shard;
  std::vector<std::string> traces;
  bool dry_run = false;
  CellsFlags cells;
  RunFlags run;
};

SweepPlan plan(const SweepFlags& options) {
  config::Sweep sweep = config::read_sweep(options.file);
  for (config::SweepRun& run : sweep.runs) {
    for (const replay::RequestField& field : replay::request_fields()) {
      if (field.flag.of.runs) copy_value(field, options.run.request, run.request);
    }
    if (options.run.device_flag->count() > 0) run.devices.clear();
  }
  if (!options.traces.empty()) use_traces(sweep, options.traces, "--trace");
  return plan_sweep(std::move(sweep), run_options(options.run));
}

/// Reports on stderr what a resumed sweep finds.
void report_resumed(const CellsFile& cells, const SweepLayout& layout, const Standing& standing) {
  report_torn("kvbench", cells.path(), cells.torn_bytes());
  const auto old = cells.layout();
  if (!old) return;
  const bool changed = encode_layout(*old) != encode_layout(layout);
  say("kvbench",
      fmt::format(
          "{}: {} of {} cells are already computed{}", cells.path(), standing.finished, standing.cells,
          changed ? "; the sweep file, a trace, the device or kvbench has changed since, and the cells affected are "
                    "computed again"
                  : ""));
}

void compute(const SweepFlags& options, const SweepPlan& plan, const SweepLayout& layout, const Shard& shard,
             CellsFile& cells) {
  if (options.cells.resume) report_resumed(cells, layout, standing_of(plan, layout, shard, cells));
  cells.begin(layout);
  replay::ReplayHooks hooks{.stop = &stop_requested()};
  Progress progress("heads", options.run.quiet);
  hooks.progress = [&](double finished, Index total) { progress.show(finished, total); };
  hooks.note = note_to_stderr(options.run.quiet);
  hooks.failure = details_to_stderr(options.run.verbose);
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
Shard shard_of(const CLI::App& flags, const SweepFlags& options) {
  if (options.shard.empty()) return {};
  if (options.cells.file.empty() && !options.dry_run) {
    throw Error(
        "--shard {}: rows need the cells of all shards; name the cells file of this shard with --cells, and make rows "
        "with `kvbench merge`",
        options.shard);
  }
  constexpr const char* reason = "beside --shard, which computes cells, not rows; give it to `kvbench merge` instead";
  refuse_without_effect(flags, {"-o", "--format", "--rows"}, reason);
  note_without_effect(flags, {"--no-times", "--summary"}, reason);
  return Shard::parse(options.shard);
}

int run(const CLI::App& flags, SweepFlags& options) {
  resolve_device(options.run);
  const Shard shard = shard_of(flags, options);
  const bool sharded = !options.shard.empty();
  if (!sharded) check_table_flags(flags, options.run);
  const SweepPlan sweep = plan(options);
  if (options.dry_run) {
    print(describe(sweep));
    print(describe(estimate(sweep, shard, 30, &stop_requested())));
    return done;
  }
  std::vector<replay::MethodChoice> methods;
  for (const SweepStep& step : sweep.steps) std::ranges::copy(step.request.methods, std::back_inserter(methods));
  if (!sharded) report::Labels(options.run.labels).check(methods);
  const std::string path = cells_path(options.cells, options.run.output);
  std::optional<SweepTables> tables;
  if (sharded) {
    check_distinct(std::vector<NamedFile>{{"--cells", path}}, inputs_of(sweep));
  } else {
    const SweepTables::Parts parts{has_replays(sweep), has_measures(sweep), !sweep.sweep.published.empty()};
    tables.emplace(options.file, parts, options.run, inputs_of(sweep), path);
  }
  std::vector<CellsFile> cells;
  cells.emplace_back(path, cells_mode(options.cells, path));
  std::optional<AtForcedExit> at_forced_exit;
  if (!path.empty()) at_forced_exit.emplace([&] { explain_interruption("kvbench", path); });
  const SweepLayout layout = layout_of(sweep);  // reads every trace completely
  try {
    compute(options, sweep, layout, shard, cells.front());
  } catch (const Interrupted&) {
    if (path.empty()) throw;
    explain_interruption("kvbench", path);
    return was_interrupted;
  }
  report_device_memory(options.run);
  if (sharded) return done;
  at_forced_exit.reset();
  const int code = tables->finish(collect(layout, cells, options.run.grain));
  if (options.cells.file.empty()) cells.front().remove();
  return code;
}

}  // namespace

Command add_sweep(CLI::App& app) {
  CLI::App* flags =
      app.add_subcommand("sweep", "Run the replays and measures of a sweep file, such as configs/balancekv-fig2.toml");
  auto options = std::make_shared<SweepFlags>();
  flags->add_flag_callback(
      "--example",
      [flags] {
        require_alone(*flags, "--example");
        print(config::example_sweep());
        throw CLI::Success();
      },
      "Print a commented example with every key and every method, and exit");
  flags->add_option("file", options->file, "Sweep file (.toml)")->required();
  flags->add_option("--trace", options->traces, "Use these traces instead of those in the file");
  flags->add_flag("--dry-run", options->dry_run,
                  "Check the file, print the plan and an estimate of time, memory and disk space, and exit");
  add_cells_flags(flags, options->cells);
  flags->add_option("--shard", options->shard, "Compute part I/N of the cells, such as 1/8, for `kvbench merge`");
  add_run_flags(flags, options->run);
  add_columns_flag(flags,
                   "Print the columns of the CSV of measures and exit (for those of rows: kvbench replay --columns)",
                   options->run.format, docs_of(report::measure_columns()));
  flags
      ->add_option("--registered",
                   "Sweep file that registers claims, in place of FILE: says when git got it, and "
                   "refuses flags that would measure something else")
      ->type_size(1)
      ->type_name("FILE");
  return {flags, [flags, options] { return run(*flags, *options); },
          [flags](Words words) -> std::optional<int> {
            const std::optional<std::string> file = take_claim(words);
            if (!file || file->empty()) return std::nullopt;
            return measure_claim(*flags, *file, words);
          }};
}

}  // namespace kvbench::app
