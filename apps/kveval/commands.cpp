// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/commands.hpp>

#include <iostream>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>

#include <apps/common/program.hpp>
#include <apps/common/stop_signals.hpp>

namespace kvbench::kveval {

int run_commands(const std::function<int(const std::vector<std::string>& words)>& run) {
  std::vector<std::string> words;
  std::string word;
  while (std::getline(std::cin, word, '\0')) {
    if (!word.empty()) {
      words.push_back(word);
      continue;
    }
    const int code = run(words);
    forget_read_files();
    if (app::stop_requested()) return app::was_interrupted;
    app::print(fmt::format("done {}\n", code));
    words.clear();
  }
  if (!words.empty() || !word.empty())
    throw Error("--commands: standard input ends inside a command; end each word, and each command, with a NUL byte");
  return app::done;
}

}  // namespace kvbench::kveval
