// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/own_program.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>

namespace kvbench::app {
namespace {

namespace fs = std::filesystem;

/// "" where the system does not say which file this program is.
fs::path beside(const std::string& program) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : own.parent_path() / program;
}

/// As a word of a shell.
std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// Replaces this program. Returns where there is no other.
void become(const char* program, const Words& words) {
  Words texts = {program};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  if (const fs::path near = beside(program); !near.empty()) execv(near.c_str(), argv.data());
  execvp(program, argv.data());
}

int start(const CLI::App& flags, const OwnProgram& own, const Words& words) {
  if (const std::optional<int> code = own.answer(words)) return *code;
  become(own.program, words);
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::ranges::any_of(words, asks)) {
    if (own.help) return own.help();
    print(flags.help(flags.get_parent()->get_name()));
    return done;
  }
  throw Error("kvbench {} runs the program {}, which is neither beside kvbench nor in PATH. {}", flags.get_name(),
              own.program, own.remedy);
}

}  // namespace

const char* const llama_remedy =
    "It needs llama.cpp: run scripts/fetch-model, and configure with -DKVBENCH_KVDUMP=ON -DKVBENCH_LLAMA_PREFIX=... "
    "as docs/kvdump.md shows";
const char* const laboratory_remedy =
    "`make build` in a clone of kvbench builds it, `make install` puts it into PATH; `pip install .` has no checks.";
const char* const package_remedy =
    "It is a program of the Python package: `pip install .` or `pip install ./python` in a clone of kvbench puts it "
    "into PATH.";

ProgramAnswer ask_program(const std::string& program, const Words& words, int seconds) {
  constexpr int none = 200;
  const fs::path near = beside(program);
  std::string line =
      fmt::format("p=$(command -v {}) || exit {}; echo \"$p\"; exec /usr/bin/timeout -s KILL {} \"$p\"",
                  quoted(!near.empty() && ::access(near.c_str(), X_OK) == 0 ? near.string() : program), none, seconds);
  for (const std::string& word : words) line += " " + quoted(word);
  std::FILE* const stream = ::popen((line + " 2>&1 </dev/null").c_str(), "r");
  if (stream == nullptr) throw IoError("no program can be started: {}", std::strerror(errno));
  ProgramAnswer answer;
  for (char part[4096]; const std::size_t count = std::fread(part, 1, sizeof part, stream);)
    answer.text.append(part, count);
  const int status = ::pclose(stream), code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == none) return answer;
  const std::size_t end = std::min(answer.text.find('\n'), answer.text.size());
  answer.path = answer.text.substr(0, end);
  answer.text.erase(0, end + 1);
  if (code == 128 + SIGKILL)
    answer.fault = fmt::format("gave no answer in {} s", seconds);
  else if (code != 0)
    answer.fault = fmt::format("ended with exit code {}", code);
  return answer;
}

std::optional<std::string> take_claim(Words& words) {
  const std::string flag = "--registered";
  const auto found =
      std::ranges::find_if(words, [&](const auto& word) { return word == flag || word.starts_with(flag + "="); });
  if (found == words.end()) return std::nullopt;
  if (*found != flag) {
    std::string file = found->substr(flag.size() + 1);
    words.erase(found);
    return file;
  }
  const auto value = found + 1;
  if (value == words.end() || value->starts_with("-")) return "";
  std::string file = *value;
  words.erase(found, value + 1);
  return file;
}

Command own_command(CLI::App* flags, OwnProgram own) {
  return {.flags = flags, .run = {}, .start = [flags, own = std::move(own)](const Words& words) {
            return start(*flags, own, words);
          }};
}

int measure_claim(const CLI::App& flags, const std::string& file, Words words) {
  words.insert(words.begin(), {file, "--run", flags.get_name()});
  return start(flags, {.program = "kvbench-claim", .remedy = package_remedy}, words);
}

}  // namespace kvbench::app
