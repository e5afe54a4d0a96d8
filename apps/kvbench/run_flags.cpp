// SPDX-License-Identifier: Apache-2.0
#include "run_flags.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/replay/workers.hpp>
#include <kvbench/report/table.hpp>

#include "commands.hpp"

namespace kvbench::app {
namespace {

const std::map<std::string, Grain> grains = {
    {"trace", Grain::trace}, {"layer", Grain::layer}, {"head", Grain::head}, {"query", Grain::query}};
const std::map<std::string, Isa> isas = {{"scalar", Isa::scalar}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}};
const std::map<std::string, Element> kv_elements = {{"bf16", Element::f16}, {"f16", Element::f16}, {"f32", Element::f32}};

/// text(records of one run), under the run's name where there are names.
template <class F>
std::string by_run(std::span<const Record> records, const char* heading, F text) {
  std::string out;
  while (!records.empty()) {
    const std::string& run = records.front().run;
    const auto end = std::ranges::find_if(records, [&](const Record& r) { return r.run != run; });
    const auto part = records.first(static_cast<std::size_t>(end - records.begin()));
    if (!run.empty()) out += fmt::format("{}{}{}\n", out.empty() ? "" : "\n", heading, run);
    out += text(part);
    records = records.subspan(part.size());
  }
  return out;
}

}  // namespace

void add_form_flags(CLI::App* flags, std::string& format, std::string& output) {
  flags->add_option("--format", format, "csv, md or table (default: csv; a table on a terminal)")
      ->check(CLI::IsMember({"csv", "md", "table"}));
  flags->add_option("-o,--output", output, "File to write (appears whole or not at all); default: standard output");
}

void add_table_flags(CLI::App* flags, TableFlags& o) {
  flags->add_option("--rows", o.grain, "Finest rows: trace, layer, head or query (default: layer)")
      ->transform(CLI::CheckedTransformer(grains));
  add_form_flags(flags, o.format, o.output);
  flags->add_flag("--no-times", o.no_times, "Leave the time columns out, so that files compare byte for byte");
  flags->add_flag("--summary", o.summary, "With -o: print the short table too (default on a terminal)");
}

void add_run_flags(CLI::App* flags, RunFlags& o) {
  o.device_flag = flags
                      ->add_option("--device", o.machine.backend,
                                   "cpu, cuda, auto (cuda where a GPU is usable, else cpu) or ref (the slow reference)")
                      ->check(CLI::IsMember({"auto", "cpu", "cuda", "ref"}));
  o.isa_flag = flags->add_option("--isa", o.isa, "Instruction set: scalar, avx2, avx512 (default: the best)")
                   ->transform(CLI::CheckedTransformer(isas));
  flags
      ->add_option("--threads", o.machine.threads,
                   "Threads, over heads (default: all processors; on cuda 1: each one holds a head in device memory)")
      ->check(CLI::Range(0, 4096));
  flags
      ->add_option(
          "--memory", o.memory,
          "Memory that heads in flight may take together, such as 2G (default: three quarters of what there is); fewer "
          "threads run where they would take more")
      ->transform(CLI::AsSizeValue(false));
  flags->add_flag("--standalone", o.machine.standalone,
                  "Answer every cell alone: no shared scores, no tokens attended to once for several budgets (slow; a check)");
  flags
      ->add_option("--kv-dtype", o.machine.kv_element,
                   "Element type of a deployment's cache, for the byte columns: bf16, f16, f32")
      ->transform(CLI::CheckedTransformer(kv_elements));
  add_table_flags(flags, o);
  flags->add_flag("-q,--quiet", o.quiet, "No progress bar");
}

void resolve_device(RunFlags& options) {
  const DeviceChoice choice = choose_device(options.machine.backend);
  options.machine.backend = choice.backend;
  if (!choice.note.empty()) fmt::print(stderr, "kvbench: {}\n", choice.note);
}

void report_device_memory(const RunFlags& options) {
  if (options.machine.backend != "cuda") return;
  const auto backend = make_cuda_backend();
  const DeviceMemory memory = backend->memory().value();
  constexpr double mib = 1 << 20;
  fmt::print(stderr, "kvbench: {} held at most {:.0f} MiB of {:.0f} MiB of device memory\n", backend->name(),
             static_cast<double>(memory.peak) / mib, static_cast<double>(memory.limit) / mib);
}

void set_machine(const RunFlags& options, ReplayRequest& request) {
  request.backend = options.machine.backend;
  request.threads = options.machine.threads;
  request.memory = static_cast<double>(options.memory);
  request.standalone = options.machine.standalone;
  request.kv_element = options.machine.kv_element;
  if (options.isa_flag->count() > 0) {
    if (!isa_available(options.isa))
      throw Error("--isa {}: this processor or build does not have it; the best here is {}", name_of(options.isa),
                  name_of(best_isa()));
    request.isa = options.isa;
  }
}

std::string format_records(const TableFlags& options, std::span<const Record> records, const Output& output) {
  if (options.format == "md") return by_run(records, "## ", markdown_table);
  if (shows_table(options.format, output)) return summary_table(records);
  return csv_table(records, !options.no_times);
}

std::string summary_table(std::span<const Record> records) { return by_run(records, "run ", terminal_table); }

int exit_code(std::span<const Record> records) {
  const bool failed = std::ranges::any_of(records, [](const Record& r) { return r.status == Status::failed; });
  return failed ? rows_failed : done;
}

}  // namespace kvbench::app
