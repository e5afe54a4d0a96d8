// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/config/method_flags.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/golden/compare.hpp>
#include <kvbench/golden/compute.hpp>
#include <kvbench/golden/frozen.hpp>
#include <kvbench/golden/table.hpp>
#include <kvbench/store/key.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/progress.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/validate/commands.hpp>
#include <apps/validate/flags/flags.hpp>

namespace kvbench::app {
namespace {

using golden::Outcome;
using golden::Verified;

/// The trace that is given, else the bundled one of the working folder or of the installation. Throws Error where there
/// is none.
std::string trace_path(const std::string& given) {
  constexpr const char* bundled = "traces/smollm2-135m.h5";
  if (is_method(given)) throw Error("{0}: there is no such trace; name a method with --method {0}", given);
  if (!given.empty()) return given;
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path installed = program.parent_path().parent_path() / "share/kvbench" / bundled;
  for (const std::filesystem::path& path : {std::filesystem::path(bundled), installed}) {
    if (std::filesystem::exists(path, unknown)) return path.string();
  }
  throw Error(
      "name the bundled trace: there is no {0} in this folder and no {1}; kvbench validate golden {0} is for the "
      "folder of a clone of kvbench",
      bundled, installed.string());
}

std::string label_of(const replay::MethodChoice& choice) {
  return compare::label_of({choice.info->name, choice.params.text(), {}});
}

/// The methods of --method, the first of which --port replaces; without --method all.
std::vector<golden::Method> methods_of(const GoldenFlags& o) {
  const std::vector<golden::Method> all = golden::golden_methods();
  if (o.methods.empty() && o.port.empty()) return all;
  std::vector<std::string> names;
  for (const golden::Method& method : all) names.push_back(label_of(method.named));
  std::vector<golden::Method> chosen;
  for (const replay::MethodChoice& choice : config::parse_methods(o.methods, {})) {
    const std::string name = label_of(choice);
    const auto at = std::ranges::find(names, name) - names.begin();
    if (at == std::ssize(names))
      throw Error("--method {}: it has no golden rows.{} Those that have are {}", name, did_you_mean(name, names),
                  fmt::join(names, ", "));
    chosen.push_back(all[static_cast<std::size_t>(at)]);
  }
  if (o.port.empty()) return chosen;
  const std::vector<replay::MethodChoice> ports = config::parse_methods({o.port}, {});
  if (chosen.size() != 1 || ports.size() != 1)
    throw Error("--port: name one method with --method, and one port of it; there are {} and {}", chosen.size(),
                ports.size());
  chosen.front().replayed = ports.front();
  return chosen;
}

bool is_of(const golden::Row& row, const golden::Method& method) {
  return method.named.info->name == row.method && method.named.params.text() == row.params;
}

/// The golden rows of these methods. Throws Error where they are about another trace.
std::vector<golden::Row> golden_rows_of(const GoldenFlags& o, std::span<const golden::Method> methods,
                                        const trace::Reader& reader) {
  std::vector<golden::Row> rows = golden::rows_of(
      o.golden.empty() ? report::parse_csv(golden::frozen_csv(), "golden.csv") : report::read_csv(o.golden));
  const golden::Row& first = rows.front();
  if (!reader.sha256().starts_with(first.sha256))
    throw Error("{}: the golden rows are about another trace: {} with SHA-256 {}...; this one has {}", reader.path(),
                first.trace, first.sha256, reader.sha256());
  std::erase_if(rows, [&](const golden::Row& row) {
    return std::ranges::none_of(methods, [&](const golden::Method& method) { return is_of(row, method); });
  });
  return rows;
}

std::vector<golden::Row> computed_rows(const trace::Reader& reader, std::span<const golden::Method> methods,
                                       const replay::RunOptions& how, bool quiet) {
  replay::ReplayHooks hooks{.note = note_to_stderr(quiet), .stop = &stop_requested()};
  Progress progress("replays", quiet);
  hooks.progress = [&](double finished, Index total) { progress.show(finished, total); };
  return golden::compute_rows(reader, methods, how, hooks);
}

/// What the rows say in sentences.
std::string summary(std::span<const Verified> rows, const std::string& backend) {
  constexpr std::size_t most = 20;
  std::vector<std::string> differences;
  const Verified* furthest = &rows.front();
  for (const Verified& row : rows) {
    if (row.outcome != Outcome::same) differences.push_back(row.difference);
    if (row.deviation > furthest->deviation) furthest = &row;
  }
  if (differences.empty())
    return fmt::format(
        "All {} golden rows are the same on {}. The largest difference of a figure is {:.2g} of its tolerance ({}).\n",
        rows.size(), backend, furthest->deviation, golden::name_of(furthest->row));
  std::string out = fmt::format("{} of {} golden rows differ on {}:\n", differences.size(), rows.size(), backend);
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i) out += "  " + differences[i] + "\n";
  if (differences.size() > most)
    out += fmt::format("  and {} more, which --format csv names\n", differences.size() - most);
  return out;
}

int verify(const GoldenFlags& o) {
  if (o.format == "md") throw Error("--format md: the table of golden rows is csv, json or table");
  const std::vector<golden::Method> methods = methods_of(o);
  const trace::Reader reader(trace_path(o.trace));
  std::vector<NamedFile> inputs{{"the trace", reader.path()}, {"--golden", o.golden}};
  for (const golden::Method& method : methods)
    std::ranges::move(store::files_of_method(*method.replayed.info, method.replayed.params.text()),
                      std::back_inserter(inputs));
  check_distinct(std::vector<NamedFile>{{"-o", o.output}}, inputs);
  const std::vector<golden::Row> expected = golden_rows_of(o, methods, reader);
  Output output(o.output);
  const std::vector<golden::Row> found = computed_rows(reader, methods, run_options(o), o.quiet);
  const std::string backend = found.front().backends.front();
  const std::vector<Verified> verified =
      golden::verify(expected, found, backend, o.port.empty() ? golden::Scope::everything : golden::Scope::port);
  if (verified.empty()) throw Error("--method: there is no row to verify; {}", found.front().fault);
  const std::span<const Verified> rows(verified);
  output.finish(shows_table(o.format, output) ? summary(rows, backend)
                                              : report::table_of(o.format, golden::verified_columns(), rows));
  if (output.to_file() && (o.summary || stdout_is_terminal())) print(summary(rows, backend));
  return std::ranges::all_of(rows, [](const Verified& row) { return row.outcome == Outcome::same; }) ? done
                                                                                                     : rows_failed;
}

/// The rows of all methods in their order: those that were found, else those of this version.
std::vector<golden::Row> with_others(const std::vector<golden::Row>& found) {
  const std::vector<golden::Row> known = golden::rows_of(report::parse_csv(golden::frozen_csv(), "golden.csv"));
  std::vector<golden::Row> out;
  for (const golden::Method& method : golden::golden_methods()) {
    const auto of = [&](const golden::Row& row) { return is_of(row, method); };
    std::ranges::copy_if(std::ranges::any_of(found, of) ? found : known, std::back_inserter(out), of);
  }
  return out;
}

/// Computes the golden rows on every back end of processors, and writes them.
int write(const GoldenFlags& o) {
  const std::vector<golden::Method> methods = methods_of(o);
  const trace::Reader reader(trace_path(o.trace));
  check_distinct(std::vector<NamedFile>{{"--write", o.write}}, std::vector<NamedFile>{{"the trace", reader.path()}});
  Output output(o.write);
  std::vector<std::vector<golden::Row>> by_backend{
      computed_rows(reader, methods, {.backend = "ref", .threads = o.threads}, o.quiet)};
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (!isa_available(isa))
      throw Error("--write needs a processor and a build with every instruction set, and {} is missing", name_of(isa));
    by_backend.push_back(computed_rows(reader, methods, {.isa = isa, .threads = o.threads}, o.quiet));
  }
  double deviation = 0;
  const std::vector<golden::Row> rows = golden::join_backends(by_backend, deviation);
  output.finish(golden::csv_of(with_others(rows)));
  std::string text = fmt::format(
      "{} golden rows; where back ends share one, the largest difference of a figure is "
      "{:.2g} of its tolerance.\n",
      rows.size(), deviation);
  for (const golden::Row& row : rows) {
    if (row.backends.size() < by_backend.size())
      text += fmt::format("  {}: a row of its own for {}\n", golden::name_of(row), fmt::join(row.backends, " "));
  }
  if (output.to_file()) print(text);
  return done;
}

int run(const CLI::App& flags, GoldenFlags& o) {
  for (const CLI::Option* before : flags.get_parent()->get_options()) {
    if (before->count() > 0)
      throw Error("{} has no effect before golden, which computes no check; write what belongs to golden behind it",
                  before->get_positional() ? before->results().front() : name_of(*before));
  }
  if (!o.write.empty()) {
    refuse_without_effect(flags, {"--port", "--golden", "--device", "--isa", "--format", "-o", "--summary"},
                          "beside --write, which computes the rows on every back end and writes them to its file");
    return write(o);
  }
  check_summary_flag(flags, o.output);
  resolve_device(o);
  return verify(o);
}

}  // namespace

Command add_golden(CLI::App& validate) {
  auto options = std::make_shared<GoldenFlags>();
  CLI::App* flags = declare_golden(validate, *options, docs_of(golden::verified_columns()));
  return {flags, [flags, options] { return run(*flags, *options); }};
}

}  // namespace kvbench::app
