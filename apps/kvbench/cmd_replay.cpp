// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <kvbench/compare/best.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/plan/calibration.hpp>
#include <kvbench/replay/records/raw.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/labels.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/progress.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/run_flags.hpp>

namespace kvbench::app {
namespace {

struct ReplayFlags {
  std::string raw;
  std::vector<std::string> traces;
  RunFlags run;
  replay::ReplayRequest& request = run.request;
  bool raw_outputs = false;
};

struct PlannedTrace {
  trace::Reader reader;
  replay::ReplayPlan plan;
  Index work_items() const { return std::ssize(plan.work_items); }
};

/// Throws Error where a trace cannot be replayed as requested, or is given twice.
std::vector<PlannedTrace> open_traces(const ReplayFlags& options) {
  std::vector<PlannedTrace> traces;
  for (const std::string& path : options.traces) {
    if (path == "full" || path == "short") throw Error("{0}: there is no such trace; write --summary={0}", path);
    refuse_value_of_flag(path, "--method");
    PlannedTrace& opened = traces.emplace_back(PlannedTrace{trace::Reader(path), {}});
    try {
      opened.plan = make_plan(opened.reader.info(), options.request);
    } catch (const Error& error) {
      if (options.traces.size() == 1) throw;
      throw Error("{}: {}", path, error.what());
    }
    for (std::size_t t = 0; t + 1 < traces.size(); ++t) {
      if (traces[t].reader.sha256() == opened.reader.sha256())
        throw Error("{} and {} are the same trace; name it once", traces[t].reader.path(), path);
    }
  }
  return traces;
}

std::vector<trace::PromptInfo> prompts_of(std::span<const PlannedTrace> traces) {
  std::vector<trace::PromptInfo> prompts;
  for (const PlannedTrace& trace : traces) std::ranges::copy(trace.reader.info().prompts, std::back_inserter(prompts));
  return prompts;
}

/// The first layer of the model that is replayed.
std::int64_t first_layer(std::span<const PlannedTrace> traces) {
  std::vector<std::int64_t> first;
  for (const PlannedTrace& trace : traces) {
    for (const replay::PromptPlan& prompt : trace.plan.prompts) first.push_back(std::ranges::min(prompt.layers));
  }
  return std::ranges::min(first);
}

/// What to write where the window of a method was meant.
std::string own_window(const CLI::App& flags) {
  const std::string value = flags.count("--window") > 0 ? flags.get_option("--window")->results().front() : "";
  const std::string advice = method_advice(flags, "--window", value);
  return advice.empty() ? "" : "." + advice.substr(0, advice.size() - 1);
}

/// Throws Error where a flag is given that changes nothing in a replay of these traces.
void check_effects(const CLI::App& flags, const ReplayFlags& options, std::span<const PlannedTrace> traces) {
  using replay::Protocol;
  check_table_flags(flags, options.run);
  if (std::ranges::none_of(options.request.methods, &replay::MethodChoice::depends_on_seed))
    note_without_effect(flags, {"--seeds"}, "here: no method that is replayed draws random numbers");
  if (options.run.format == "md" || options.run.format == "table")
    note_without_effect(flags, {"--standalone"}, "beside --format " + options.run.format + ", which shows no costs");
  const std::string& device = options.run.device;
  if (device != "cpu" && options.run.device_flag->as<std::string>() == device)
    note_without_effect(flags, {"--isa"}, "beside --device " + device + "; it is for the cpu");
  if (const Index dense = options.request.dense_layers; dense > 0 && first_layer(traces) >= dense)
    say("kvbench", fmt::format("--dense-layers {} keeps no layer exactly: the first that is replayed is layer {}",
                               dense, first_layer(traces)));
  const Protocol given = options.request.protocol;
  const std::vector<trace::PromptInfo> prompts = prompts_of(traces);
  const auto decodes = [](const trace::PromptInfo& prompt) { return prompt.prompt_tokens < prompt.num_tokens; };
  const bool automatic = given == Protocol::automatic;
  if (given != Protocol::prefill && !(automatic && !std::ranges::all_of(prompts, decodes)))
    refuse_without_effect(flags, {"--window"}, "here: it is for --protocol prefill" + own_window(flags));
  if (given == Protocol::prefill || (automatic && std::ranges::none_of(prompts, decodes)))
    refuse_without_effect(flags, {"--decoded"}, "with protocol prefill, which decodes no tokens");
}

/// The rows of all traces, one trace after another; the best row is that of a trace.
std::vector<replay::Record> replay_all(const CLI::App& flags, const ReplayFlags& options, const replay::RunOptions& how,
                                       std::span<const PlannedTrace> traces, std::optional<AtomicFile>& raw) {
  Index total = 0, before = 0;
  for (const PlannedTrace& trace : traces) total += trace.work_items();
  Progress progress("heads", options.run.quiet);
  replay::ReplayHooks hooks{.note = note_to_stderr(options.run.quiet),
                            .failure = details_to_stderr(options.run.verbose),
                            .stop = &stop_requested()};
  hooks.progress = [&](double finished, Index) { progress.show(static_cast<double>(before) + finished, total); };
  std::vector<replay::Record> all;
  bool sinks_recalled = false;
  const std::vector<std::string> names = distinct_names(options.traces);
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const PlannedTrace& trace = traces[t];
    const trace::Reader& reader = trace.reader;
    replay::ReplayResults results = replay::replay(reader, options.request, how, hooks);
    results.trace = names[t];
    for (const replay::HeadResult& head : results.heads)
      sinks_recalled |= std::ranges::any_of(head.results, &replay::ConfigurationResult::sinks_recalled);
    if (raw) write_raw(*raw, reader, options.request, results);
    std::vector<replay::Record> records = summarize(results, options.run.grain, replay::thread_count(how));
    compare::mark_best(records, options.request.rank_by);
    std::ranges::move(records, std::back_inserter(all));
    before += trace.work_items();
  }
  if (!sinks_recalled)
    note_without_effect(flags, {"--recall-sinks"}, "here: it changes the recall of no method that is replayed");
  return all;
}

int run(const CLI::App& flags, ReplayFlags& options) {
  if (options.traces.size() > 1 && !options.raw.empty())
    throw Error("--raw: a file of raw results holds one trace, and {} are given; replay each in a command of its own",
                options.traces.size());
  require_ending("--raw", options.raw, "raw results are HDF5", ".h5");
  resolve_device(options.run);
  options.run.request.resolve();
  replay::RunOptions how = run_options(options.run);
  how.keep_raw = options.raw_outputs;
  const std::vector<PlannedTrace> traces = open_traces(options);
  check_effects(flags, options, traces);
  report::Labels(options.run.labels).check(options.request.methods);
  std::vector<NamedFile> inputs = input_files(options.request);
  for (const std::string& path : options.traces) inputs.push_back({"the trace", path});
  check_distinct(std::vector<NamedFile>{{"-o", options.run.output}, {"--raw", options.raw}}, inputs);
  Output output(options.run.output);
  std::optional<AtomicFile> raw;
  if (!options.raw.empty()) raw.emplace(options.raw);
  const std::vector<replay::Record> records = replay_all(flags, options, how, traces, raw);
  output.finish(format_records(options.run, records, output));
  const bool quiet = options.run.quiet && options.run.summary.empty();  // asked by a program in a terminal, say
  if (output.to_file() && !quiet) print(summary_beside(options.run, records));
  report_device_memory(options.run);
  return exit_code(records);
}

void add_request_flags(CLI::App* flags, ReplayFlags& o) {
  flags->add_option("traces", o.traces, "Trace files (.h5); rows of several traces make one table")->required();
  o.run.request.add(flags, &replay::FieldCommands::replay);
  flags->get_option("--method")->required();
}

}  // namespace

Command add_replay(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("replay", "Run methods on a trace, and measure their error, recall and memory");
  auto options = std::make_shared<ReplayFlags>();
  add_request_flags(flags, *options);
  add_run_flags(flags, options->run);
  add_columns_flag(flags, "Print the columns of the CSV and exit", options->run.format,
                   docs_of(report::record_columns()));
  CLI::Option* raw = flags->add_option("--raw", options->raw, "Write the metrics of every query to this HDF5 file");
  flags
      ->add_flag("--raw-outputs", options->raw_outputs,
                 "Also write the outputs of every query, and the entries that answered the last ones")
      ->needs(raw);
  return {flags, [flags, options] { return run(*flags, *options); }};
}

}  // namespace kvbench::app
