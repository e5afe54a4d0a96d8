// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/own_program.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>

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

int start(const std::string& command, const OwnProgram& own, const Words& words) {
  if (const std::optional<int> code = own.answer(words)) return *code;
  become(own.program, words);
  const auto asks = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (std::ranges::any_of(words, asks)) return own.help();
  throw Error("kvbench {} runs the program {}, which is neither beside kvbench nor in PATH. {}", command, own.program,
              own.remedy);
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

std::string path_of_program(const std::string& program) {
  std::vector<fs::path> places = {beside(program)};
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : CLI::detail::split(path == nullptr ? "" : path, ':'))
    places.push_back(fs::path(folder.empty() ? "." : folder) / program);
  for (const fs::path& place : places) {
    std::error_code none;
    if (fs::is_regular_file(place, none) && ::access(place.c_str(), X_OK) == 0) return place.string();
  }
  return "";
}

Command own_command(CLI::App* flags, OwnProgram own) {
  return {.flags = flags, .run = {}, .start = [flags, own = std::move(own)](const Words& words) {
            return start(flags->get_name(), own, words);
          }};
}

}  // namespace kvbench::app
