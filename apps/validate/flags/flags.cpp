// SPDX-License-Identifier: Apache-2.0
#include <apps/validate/flags/flags.hpp>

#include <utility>

#include <kvbench/report/columns/tables.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/commands.hpp>
#include <apps/common/rows/shared_flags.hpp>

namespace kvbench::app {

CLI::App* declare_validate(CLI::App& app, ValidateFlags& o) {
  CLI::App* flags =
      app.add_subcommand("validate", "Test theorems and claims of the papers: one row per statement, with a verdict");
  flags->add_option("trace", o.trace, "Trace file (.h5)");
  flags->add_flag("--synthetic", o.synthetic,
                  "Check built-in streams on which the bounds are informative, beside the trace or alone");
  flags->add_flag(
      "--mutants", o.mutants,
      "Plant faults in the implementations under test, on synthetic streams, and print which checks catch them");
  flags->add_flag("--list", o.list, "List the checks and exit");
  flags->add_option("--check", o.checks, "Ids of checks, or prefixes of ids: subgen.lemma1, balancekv (default: all)");
  flags->add_option("--claim", o.claims, "The same as --check");
  flags->add_option("--method", o.methods, "Only checks about these methods");
  o.request.add(flags, &replay::FieldCommands::validate);
  flags->add_flag("--thorough", o.thorough, "2000 seeds and 32 queries, unless --seeds and --queries are given");
  o.queries_flag = flags->add_option("--queries", o.validate.queries, "Number of queries per head, spread evenly")
                       ->check(number_in<Index>(1, 4096))
                       ->capture_default_str();
  o.seeds_flag =
      flags->add_option("--seeds", o.validate.seeds, "Number of independent trials per probability statement")
          ->check(number_in<Index>(10, 1000000))
          ->capture_default_str();
  flags
      ->add_option("--seed-offset", o.validate.seed_offset,
                   "First seed of the trials: another offset repeats the run with other draws")
      ->check(number_in<std::uint32_t>(0, 4000000000u))
      ->capture_default_str();
  flags
      ->add_option("--alpha", o.validate.alpha,
                   "Probability that a run reports a violation although there is none (claims: 5 % for each claim)")
      ->check(number_in(1e-12, 0.5))
      ->capture_default_str();
  flags->add_option("--eps", o.validate.eps, "Accuracy eps of the theorems that have one")
      ->check(number_in(1e-3, 1.0))
      ->capture_default_str();
  flags->add_option("--delta", o.validate.delta, "Failure probability delta of the theorems that have one")
      ->check(number_in(1e-6, 0.5))
      ->capture_default_str();
  flags
      ->add_option("-j,--threads", o.validate.threads,
                   "Number of threads (default: OMP_NUM_THREADS, else all processors)")
      ->check(number_in(0, 4096));
  add_form_flags(flags, o.format, o.output);
  add_columns_flag(flags, "Print the columns of the CSV and exit", o.format, docs_of(report::check_columns()));
  flags->add_flag("--summary", o.summary, "With -o: also print the short table (default on a terminal)");
  flags->add_flag("-q,--quiet", o.quiet, "Do not show a progress bar");
  take_one_value_each(*flags);
  add_examples(*flags,
               {"validate --list", "validate traces/smollm2-135m.h5 --check chelsea -o validate.csv --summary"});
  return flags;
}

CLI::App* declare_golden(CLI::App& validate, GoldenFlags& o, std::vector<ColumnDoc> columns) {
  CLI::App* flags = validate.add_subcommand(
      "golden", "Compute the golden rows of every method on the bundled trace again, and compare them");
  flags->add_option("trace", o.trace,
                    "The bundled trace (default: traces/smollm2-135m.h5 in this folder or in the installation)");
  flags->add_option("-m,--method", o.methods,
                    "Only the rows of these methods, with parameters in brackets where they have any (default: all)");
  flags->add_option("--port", o.port, "Replay this method in place of the one that --method names: FILE.py:NAME");
  flags->add_option("--golden", o.golden, "Compare with the rows of this file instead of those of this version (.csv)");
  flags->add_option("--write", o.write,
                    "Compute the rows on every back end of processors and write them (.csv). With --method, those of "
                    "other methods are the rows of this version");
  add_device_flags(flags, o);
  add_form_flags(flags, o.format, o.output);
  flags->add_flag("--summary", o.summary, "With -o: also print the sentences (default on a terminal)");
  flags->add_flag("-q,--quiet", o.quiet, "Do not show a progress bar");
  add_columns_flag(flags, "Print the columns of the CSV and exit", o.format, std::move(columns));
  take_one_value_each(*flags);
  add_examples(*flags,
               {"validate golden --method snapkv", "validate golden --method snapkv --port \"snapkv[window=16]\""});
  return flags;
}

}  // namespace kvbench::app
