// SPDX-License-Identifier: Apache-2.0
// kvbench links no model: `kvbench eval` runs the program kveval. It answers itself what needs no model.
#include <algorithm>
#include <optional>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks.hpp>
#include <kvbench/report/columns/tables.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/column_page.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/eval/options.hpp>
#include <apps/kvbench/own_program.hpp>

namespace kvbench::app {
namespace {

/// Prints the page of a flag that no other flag may accompany.
int print_page(const std::string& page, Words arguments) {
  CLI::App flags;
  flags.allow_extras();
  flags.add_flag(page);
  std::string format;
  if (page == "--columns") flags.add_option("--format", format)->check(one_of({"csv", "json", "md", "table"}));
  std::ranges::reverse(arguments);  // as CLI11 wants them
  flags.parse(std::move(arguments));
  if (const auto others = flags.remaining(); !others.empty())
    throw Error("{} has no effect beside {}, which prints a page and ends; leave it out", others.front(), page);
  const std::vector<ColumnDoc> columns = docs_of(report::eval_columns());
  print(page == "--list-tasks" ? eval::list_of_tasks() : columns_in(format, columns));
  return done;
}

std::optional<int> answer(const Words& words) {
  for (const char* page : {"--list-tasks", "--columns"}) {
    if (std::ranges::find(words, page) != words.end()) return print_page(page, words);
  }
  return std::nullopt;
}

int help() {
  const char* const words[] = {"kveval", "--help"};
  return kveval::parse_options(static_cast<int>(std::ssize(words)), words).exit_code;
}

}  // namespace

Command add_eval(CLI::App& app) {
  CLI::App* flags =
      app.add_subcommand("eval", "Measure what methods do to the output of a model: runs kveval with these arguments");
  kveval::declare_flags(*flags);
  flags->add_option("--registered", "Claim file that registers methods, budgets and documents, in place of these flags")
      ->type_size(1)
      ->type_name("FILE");
  const Command eval =
      own_command(flags, {.program = "kveval", .remedy = llama_remedy, .help = help, .answer = answer});
  return {flags, {}, [eval, flags](Words words) -> std::optional<int> {
            const std::optional<std::string> file = take_claim(words);
            if (!file) return eval.start(words);
            if (file->empty()) throw Error("--registered: the value is empty; give the file of a claim");
            return measure_claim(*flags, *file, words);
          }};
}

}  // namespace kvbench::app
