// SPDX-License-Identifier: Apache-2.0
// The command line of kveval.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/eval/transcripts.hpp>
#include <kvbench/loop/layer_loop.hpp>

#include <apps/common/rows/cells_flags.hpp>

namespace kvbench::kveval {

struct Options {
  std::string model;
  std::vector<std::string> texts;   ///< files; each is the haystack of documents of its own
  std::vector<std::string> ids;     ///< files of token ids, one document each, instead of tasks
  std::string transcripts;          ///< file of conversations, instead of tasks
  eval::Compressions compressions;  ///< of conversations
  std::vector<std::string> tasks;
  Index documents = 4, score = 256, questions = 4;
  std::vector<Index> contexts;  ///< lengths of the context, ascending; documents are made for the last one
  std::uint32_t document_seed = 0;
  eval::Generation generation;  ///< if documents are continued, `score` is the number of its tokens
  bool question_inside = false;
  bool chat = false;  ///< documents of tasks are conversations in the form of the model's chat template
  std::string sweep;  ///< file that gives the configurations instead of flags
  std::vector<loop::LoopConfiguration> configurations;
  replay::ReplayRequest
      request;  ///< what configurations have in common: protected tokens, dense layers, element type of the cache
  std::vector<std::int64_t> layers;  ///< in which methods run; empty: all
  eval::Inject inject = eval::Inject::all;
  double inject_scale = 1;
  bool f32 = true;
  bool one_at_a_time = false;
  replay::RunOptions how;
  eval::EvalRows rows;
  std::string output, raw, format;
  std::vector<std::string> labels;  ///< --label, of what is printed for readers
  app::CellsFlags cells;
  bool times = true, quiet = false;
  bool commands = false;  ///< nothing else is set: commands come from standard input

  Index context() const { return contexts.back(); }  ///< of the documents that are made
  /// Whether the method of a configuration has the property.
  bool any(const std::function<bool(const methods::MethodInfo&)>& property) const {
    return std::ranges::any_of(configurations, [&](const auto& each) { return property(*each.method.info); });
  }
};

struct ParsedOptions {
  std::optional<Options> options;  ///< absent after --help, --version, --list-tasks or bad usage: exit with exit_code
  int exit_code = 0;
};

/// Adds the flags of kveval to an application that only describes them, as long as the program runs.
void declare_flags(CLI::App& app);

/// Prints help to stdout, usage errors to stderr. Throws Error.
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace kvbench::kveval
