// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/config/field_names.hpp>
#include <kvbench/config/method_flags.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/document/writers.hpp>
#include <kvbench/validate/figure_checks.hpp>
#include <kvbench/validate/validate.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/common/rows/progress.hpp>
#include <apps/common/rows/shared_flags.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/validate/commands.hpp>
#include <apps/validate/flags/flags.hpp>
#include <apps/validate/mutant_table.hpp>

namespace kvbench::app {
namespace {

/// The checks of the library, then the claims of the sweep files of configs/.
std::span<const bounds::Check> known_checks() {
  static const std::vector<bounds::Check> all = [] {
    std::vector<bounds::Check> checks(validate::all_checks().begin(), validate::all_checks().end());
    std::ranges::copy(validate::figure_checks(), std::back_inserter(checks));
    return checks;
  }();
  return all;
}

std::string as_text(const ValidateFlags& o, const Output& output, std::span<const evidence::CheckRow> rows) {
  if (o.format == "md") return report::markdown(report::every_check(rows));
  return shows_table(o.format, output) ? report::terminal_text(report::check_summary(rows))
                                       : report::table_of(o.format, report::check_columns(), rows);
}

/// The names of the methods of --method.
std::vector<std::string> methods_of(const ValidateFlags& o) {
  std::vector<std::string> names;
  for (const replay::MethodChoice& choice : config::parse_methods(o.methods, {})) names.push_back(choice.info->name);
  return names;
}

/// What --check and --claim name. Throws Error, which names --claim where its value is wrong; --check is the word of
/// find_checks().
std::vector<std::string> ids_of(const ValidateFlags& o) {
  std::vector<std::string> ids = split_list(o.checks, "--check"), claims = split_list(o.claims, "--claim");
  validate::find_checks(known_checks(), ids, {});
  try {
    validate::find_checks(known_checks(), claims, {});
  } catch (const Error& error) {
    const auto claim = [](std::string_view field) { return field == "checks" ? "--claim" : ""; };
    throw Error("{}", config::rename_fields(error.what(), claim));
  }
  std::ranges::move(claims, std::back_inserter(ids));
  return ids;
}

/// The checks of --check, --claim and --method. Throws Error where there are none.
std::vector<const bounds::Check*> chosen_checks(const ValidateFlags& o) {
  std::vector<const bounds::Check*> checks = validate::find_checks(known_checks(), ids_of(o), methods_of(o));
  if (checks.empty())
    throw Error("--method {}: {} is about it; `kvbench validate --list` shows all checks", fmt::join(o.methods, ","),
                o.checks.empty() && o.claims.empty() ? "no check" : "none of the checks of --check and --claim");
  return checks;
}

std::string checks_list(std::span<const bounds::Check* const> checks) {
  std::size_t width = 0;
  for (const bounds::Check* check : checks) width = std::max(width, check->id.size());
  std::string out;
  for (const bounds::Check* check : checks)
    out += fmt::format("{:<{}}  {}\n{:<{}}  {}\n", check->id, width, check->statement, "", width, check->paper);
  return out;
}

/// The same as a table, for the pages of methods (scripts/docs).
std::string checks_markdown(std::span<const bounds::Check* const> checks) {
  std::string out = "| check | method | statement | source |\n| --- | --- | --- | --- |\n";
  for (const bounds::Check* check : checks)
    out += fmt::format("| `{}` | {} | {} | {} |\n", check->id, check->about(), cell(check->statement),
                       with_links(cell(check->paper)));
  return out;
}

int list(const CLI::App& flags, const ValidateFlags& o) {
  require_alone(flags, "--list", {"--check", "--claim", "--method", "--format"});
  if (!o.format.empty() && o.format != "md")
    throw Error("--format {}: --list prints text, or Markdown with --format md", o.format);
  const std::vector<const bounds::Check*> checks = chosen_checks(o);
  print(o.format == "md" ? checks_markdown(checks) : checks_list(checks));
  return done;
}

/// Plants the faults, and prints which checks catch them.
int run_planted(const CLI::App& flags, const ValidateFlags& o) {
  if (!o.trace.empty()) throw Error("--mutants runs on synthetic streams; leave out {}", o.trace);
  ids_of(o);
  refuse_without_effect(flags, {"--check", "--claim", "--layers", "--heads", "--synthetic"},
                        "beside --mutants, which runs the checks of each fault on synthetic streams; choose faults "
                        "with --method");
  if (o.format == "md") throw Error("--format md: the table of --mutants is csv, json or table");
  const std::vector<const faithful::Mutant*> mutants = faithful::find_mutants(methods_of(o));
  if (mutants.empty())
    throw Error("--method {}: no fault is planted into it; leave --method out to see all", fmt::join(o.methods, ","));
  Output output(o.output);
  replay::ReplayHooks hooks{.stop = &stop_requested()};
  Progress progress("faults", o.quiet);
  hooks.progress = [&](double done_faults, Index total) { progress.show(done_faults, total); };
  const std::vector<faithful::MutantResult> results =
      run_mutants(mutants, faithful::mutant_subjects(o.validate.queries), o.validate, hooks);
  const bool table = shows_table(o.format, output);
  const std::span<const faithful::MutantResult> rows(results);
  output.finish(table ? report::terminal_text(mutant_summary(rows))
                      : report::table_of(o.format, mutant_columns(), rows));
  if (output.to_file() && (o.summary || stdout_is_terminal())) print(report::terminal_text(mutant_summary(rows)));
  return std::ranges::all_of(results, &faithful::MutantResult::as_expected) ? done : rows_failed;
}

/// Throws Error where a flag is given that changes nothing.
void check_effects(const CLI::App& flags, const ValidateFlags& o) {
  check_summary_flag(flags, o.output);
  if (o.trace.empty() && !o.mutants)
    refuse_without_effect(flags, {"--layers", "--heads"}, "without a trace; synthetic streams have one head");
  if (!o.seeds_flag->empty() && !o.queries_flag->empty())
    note_without_effect(flags, {"--thorough"}, "beside --seeds and --queries, which it would set");
}

/// What --layers and --heads leave as it is, and what needs a trace: claims about the whole trace. Throws Error where
/// no other check runs.
void name_whole_trace_checks(const CLI::App& flags, const ValidateFlags& o,
                             std::span<const bounds::Check* const> checks) {
  if (!o.trace.empty() && flags.count("--layers") + flags.count("--heads") == 0) return;
  std::vector<std::string> ids;
  for (const bounds::Check* check : checks) {
    if (check->scope == bounds::Scope::trace) ids.push_back(check->id);
  }
  if (o.trace.empty()) {
    if (ids.size() == checks.size())
      throw Error("{}: {} about a whole trace; give one", listed(ids),
                  ids.size() == 1 ? "this check is" : "these checks are");
    if (!ids.empty())
      say("kvbench", fmt::format("{} checks are about a whole trace, and none is given: {}", ids.size(), listed(ids)));
    return;
  }
  if (ids.size() == checks.size())
    refuse_without_effect(flags, {"--layers", "--heads"}, "on these checks, which are about the whole trace");
  if (!ids.empty())
    say("kvbench", fmt::format("--layers and --heads do not hold for {} checks about the whole trace, which run on all "
                               "its layers and kv heads: {}",
                               ids.size(), listed(ids)));
}

/// The options with the sizes of --thorough where the user gave none.
ValidateFlags with_sizes(ValidateFlags o) {
  constexpr Index thorough_seeds = 2000, thorough_queries = 32;
  if (o.thorough && o.seeds_flag->empty()) o.validate.seeds = thorough_seeds;
  if (o.thorough && o.queries_flag->empty()) o.validate.queries = thorough_queries;
  return o;
}

int run(const CLI::App& flags, const ValidateFlags& o) {
  if (o.list) return list(flags, o);
  check_effects(flags, o);
  if (o.mutants) return run_planted(flags, o);
  if (is_method(o.trace)) throw Error("{0}: there is no such trace; choose checks with --check {0}", o.trace);
  if (o.trace.empty() && !o.synthetic) throw Error("give a trace, or --synthetic for the built-in streams, or both");
  const std::vector<const bounds::Check*> checks = chosen_checks(o);
  name_whole_trace_checks(flags, o, checks);
  check_distinct(std::vector<NamedFile>{{"-o", o.output}}, std::vector<NamedFile>{{"the trace", o.trace}});
  std::optional<trace::Reader> reader;
  std::vector<bounds::SubjectSource> subjects;
  if (!o.trace.empty()) {
    RequestFlags selected = o.request;
    selected.resolve();
    reader.emplace(o.trace);
    subjects = bounds::trace_subjects(*reader, selected.layers, selected.kv_heads, o.validate.queries);
  }
  if (o.synthetic) std::ranges::move(bounds::synthetic_subjects(o.validate.queries), std::back_inserter(subjects));
  Output output(o.output);
  replay::ReplayHooks hooks{.stop = &stop_requested()};
  validate::FinishedRows finished;
  const auto write_finished = [&] {
    output.finish(as_text(o, output, finished.judged(o.validate.alpha)));
    say("kvbench", "interrupted; the rows of the finished checks were written");
  };
  try {
    const AtForcedExit at_forced_exit(write_finished);
    Progress progress("checks", o.quiet);
    hooks.progress = [&](double done_checks, Index total) { progress.show(done_checks, total); };
    validate::validate(checks, subjects, reader ? &*reader : nullptr, o.validate, finished, hooks);
  } catch (const Interrupted&) {
    write_finished();
    return was_interrupted;
  }
  const std::vector<evidence::CheckRow> rows = finished.judged(o.validate.alpha);
  output.finish(as_text(o, output, rows));
  if (output.to_file() && (o.summary || stdout_is_terminal()))
    print(report::terminal_text(report::check_summary(rows)));
  return std::ranges::any_of(rows, evidence::is_fault) ? rows_failed : done;
}

}  // namespace

Command add_validate(CLI::App& app) {
  auto options = std::make_shared<ValidateFlags>();
  CLI::App* flags = declare_validate(app, *options);
  return {flags, [flags, options] { return run(*flags, with_sizes(*options)); }};
}

}  // namespace kvbench::app
