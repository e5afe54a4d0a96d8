// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/own_program.hpp>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <kvbench/core/error.hpp>

namespace kvbench::app {
namespace {

/// Replaces this program. Returns where there is no other.
void become(const char* program, const Words& words) {
  Words texts = {program};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  std::error_code error;
  const std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / program;
  if (!error) execv(beside.c_str(), argv.data());
  execvp(program, argv.data());
}

int start(const std::string& command, const OwnProgram& own, const Words& words) {
  if (const std::optional<int> code = own.answer(words)) return *code;
  become(own.program, words);
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::ranges::any_of(words, asks)) return own.help();
  throw Error("kvbench {} runs the program {}, which is neither beside kvbench nor in PATH. {}", command, own.program,
              own.remedy);
}

}  // namespace

Command own_command(CLI::App* flags, OwnProgram own) {
  return {.flags = flags, .run = {}, .start = [flags, own = std::move(own)](const Words& words) {
            return start(flags->get_name(), own, words);
          }};
}

}  // namespace kvbench::app
