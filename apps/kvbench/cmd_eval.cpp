// SPDX-License-Identifier: Apache-2.0
// kvbench links no model: `kvbench eval` runs the program kveval. It answers itself what needs no model.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/eval/tasks.hpp>
#include <kvbench/report/columns/evaluations.hpp>

#include <apps/common/output.hpp>
#include <apps/kvbench/column_page.hpp>
#include <apps/kvbench/commands.hpp>

namespace kvbench::app {
namespace {

constexpr const char* evaluator = "kveval";

/// The signals are blocked since main() waits for them in a thread, and a program that is executed inherits this.
void unblock_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
}

/// Replaces this program by the kveval beside it, or else by the one that PATH finds. Returns where there is none.
void become_evaluator(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  std::vector<std::string> texts = {evaluator};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  unblock_signals();
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / evaluator;
  if (!error) execv(beside.c_str(), argv.data());
  execvp(evaluator, argv.data());
}

int run(const std::vector<std::string>& arguments) {
  const auto has = [&](const char* flag) { return std::ranges::find(arguments, flag) != arguments.end(); };
  if (has("--list-tasks")) {
    print(eval::list_of_tasks());
    return done;
  }
  if (has("--columns")) {
    const std::vector<ColumnDoc> columns = docs_of(report::eval_columns());
    print(has("md") ? columns_markdown(columns) : columns_text(columns));
    return done;
  }
  become_evaluator(arguments);
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
