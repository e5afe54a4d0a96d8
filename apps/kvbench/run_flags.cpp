// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/run_flags.hpp>

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/report/replay/table.hpp>
#include <kvbench/store/key.hpp>
#include <kvbench/trace/reader.hpp>

#include <apps/common/command_line.hpp>
#include <apps/kvbench/commands.hpp>

namespace kvbench::app {
namespace {

const std::map<std::string, replay::Grain> grains = {{"trace", replay::Grain::trace},
                                                     {"layer", replay::Grain::layer},
                                                     {"head", replay::Grain::head},
                                                     {"query", replay::Grain::query}};

/// Concatenates text(records of a run) for all runs, each under the name of the run if it has one.
template <class F>
std::string by_run(std::span<const replay::Record> records, const char* heading, F text) {
  std::string out;
  while (!records.empty()) {
    const std::string& run = records.front().run;
    const auto end = std::ranges::find_if(records, [&](const replay::Record& r) { return r.run != run; });
    const auto part = records.first(static_cast<std::size_t>(end - records.begin()));
    if (!run.empty()) out += fmt::format("{}{}{}\n", out.empty() ? "" : "\n", heading, run);
    out += text(part);
    records = records.subspan(part.size());
  }
  return out;
}

std::vector<replay::Record> labelled(const TableFlags& options, std::span<const replay::Record> records) {
  std::vector<replay::Record> named(records.begin(), records.end());
  report::Labels(options.labels).apply(named);
  return named;
}

std::string full_text(std::span<const replay::Record> records) {
  return by_run(records, "run ", [](auto run) { return report::terminal_text(report::full_summary(run)); });
}

}  // namespace

void add_table_flags(CLI::App* flags, TableFlags& o) {
  add_choice(flags, "--rows", o.grain, grains, "Finest level of rows: trace, layer, head or query (default: layer)");
  add_form_flags(flags, o.format, o.output);
  flags->add_flag("--no-times", o.no_times, "Leave the time columns out, so that files can be compared byte by byte");
  flags
      ->add_flag("--summary{short}", o.summary,
                 "With -o: also print the answer in 12 lines (default on a terminal); --summary=full: with all rows")
      ->check(one_of({"short", "full"}));
  add_label_flag(flags, o.labels, "summaries and tables for readers");
}

void check_table_flags(const CLI::App& flags, const TableFlags& options) {
  check_summary_flag(flags, options.output);
  if (options.format == "md" || options.format == "table")
    note_without_effect(flags, {"--no-times"}, "beside --format " + options.format + ", which shows no times");
  const bool read = options.format == "md" || options.format == "table" || !options.summary.empty();
  if (!read && !stdout_is_terminal()) note_unread_labels(flags, "--summary");
  if (options.format == "table")
    note_without_effect(flags, {"--rows"}, "beside --format table, whose rows are those of traces");
}

void add_memory_flag(CLI::App* flags, RunFlags& o) {
  flags
      ->add_option("--memory", o.memory,
                   "Memory for all heads that are computed at the same time, such as 2G (default: three quarters of "
                   "the machine's); where they need more, fewer threads run")
      ->transform(to_bytes());
}

void add_run_flags(CLI::App* flags, RunFlags& o) {
  add_device_flags(flags, o);
  add_memory_flag(flags, o);
  o.request.add(flags, &replay::FieldCommands::runs);
  add_table_flags(flags, o);
  flags->add_flag("-q,--quiet", o.quiet, "Do not show a progress bar, nor the answer of a replay beside -o");
  flags->add_flag("--verbose", o.verbose, "Show the whole traceback where a method in Python fails");
}

void report_device_memory(const RunFlags& options) {
  if (options.device != "cuda") return;
  const auto backend = make_cuda_backend();
  const DeviceMemory memory = backend->memory().value();
  constexpr double mib = 1 << 20;
  say("kvbench", fmt::format("{} held at most {:.0f} MiB of {:.0f} MiB of device memory", backend->name(),
                             static_cast<double>(memory.peak) / mib, static_cast<double>(memory.limit) / mib));
}

std::vector<NamedFile> input_files(const replay::ReplayRequest& request) {
  std::vector<NamedFile> files;
  for (const replay::MethodChoice& choice : request.methods)
    std::ranges::move(store::files_of_method(*choice.info, choice.params.text()), std::back_inserter(files));
  if (request.calibration) files.push_back({"the calibration trace", request.calibration->trace->path()});
  return files;
}

std::string format_records(const TableFlags& options, std::span<const replay::Record> records, const Output& output) {
  const bool read = options.format == "md" || options.format == "table" || shows_table(options.format, output);
  const std::vector<replay::Record> named = read ? labelled(options, records) : std::vector<replay::Record>();
  if (read) records = named;
  if (options.format == "md")
    return by_run(records, "## ", [](auto run) { return report::markdown(report::all_rows(run)); });
  if (options.format == "table") return full_text(records);
  if (shows_table(options.format, output))
    return report::terminal_text(report::brief_summary(records, "--format table"));
  return report::table_of(options.format, report::record_columns(), records, !options.no_times);
}

std::string summary_beside(const TableFlags& options, std::span<const replay::Record> records) {
  if (options.summary.empty() && !stdout_is_terminal()) return "";
  const std::vector<replay::Record> named = labelled(options, records);
  records = named;
  if (options.summary == "full") return full_text(records);
  const std::string rest = fmt::format("--summary=full and {}", options.output);
  return report::terminal_text(report::brief_summary(records, rest));
}

int exit_code(std::span<const replay::Record> records) {
  const bool failed =
      std::ranges::any_of(records, [](const replay::Record& r) { return r.status == replay::Status::failed; });
  return failed ? rows_failed : done;
}

}  // namespace kvbench::app
