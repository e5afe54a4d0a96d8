// SPDX-License-Identifier: Apache-2.0
// kvbench links no model: `kvbench eval` runs the program kveval. It answers itself what needs no model.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks.hpp>
#include <kvbench/report/columns/tables.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/output.hpp>
#include <apps/eval/options.hpp>
#include <apps/kvbench/column_page.hpp>
#include <apps/kvbench/commands.hpp>

namespace kvbench::app {
namespace {

constexpr const char* evaluator = "kveval";

/// Replaces this program by the kveval beside it, or else by the one that PATH finds. Returns where there is none.
void become_evaluator(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  std::vector<std::string> texts = {evaluator};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / evaluator;
  if (!error) execv(beside.c_str(), argv.data());
  execvp(evaluator, argv.data());
}

/// Prints the page of a flag that no other flag may accompany.
int print_page(const std::string& page, std::vector<std::string> arguments) {
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
  print(page == "--list-tasks" ? eval::list_of_tasks()
        : format == "md"       ? columns_markdown(columns)
                               : columns_text(columns));
  return done;
}

int run(const std::vector<std::string>& arguments) {
  const auto has = [&](const char* flag) { return std::ranges::find(arguments, flag) != arguments.end(); };
  for (const char* page : {"--list-tasks", "--columns"}) {
    if (has(page)) return print_page(page, arguments);
  }
  become_evaluator(arguments);
  if (has("--help") || has("-h")) {
    const char* const help[] = {evaluator, "--help"};
    return kveval::parse_options(static_cast<int>(std::ssize(help)), help).exit_code;
  }
  throw Error(
      "kvbench eval runs the program kveval, which is neither beside kvbench nor in PATH. It needs llama.cpp: run "
      "scripts/fetch-model, and configure with -DKVBENCH_KVDUMP=ON -DKVBENCH_LLAMA_PREFIX=... as docs/kvdump.md shows");
}

}  // namespace

Command add_eval(CLI::App& app) {
  CLI::App* flags =
      app.add_subcommand("eval", "Measure what methods do to the output of a model: runs kveval with these arguments");
  flags->set_help_flag();  // kveval has its own
  flags->prefix_command();
  return {flags, [flags] { return run(flags->remaining()); }};
}

}  // namespace kvbench::app
