// SPDX-License-Identifier: Apache-2.0
// The command line of kvdump.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kvbench/trace/schema.hpp>

#include <apps/kvdump/plan.hpp>

namespace kvbench::kvdump {

struct Options {
  std::string model;
  std::string output;
  std::vector<std::string> texts, ids;   ///< one prompt each: texts first, then ids
  std::vector<std::string> transcripts;  ///< a prompt for each conversation, behind these
  bool chat = false;                     ///< messages of transcripts stand in the chat template of the model
  std::string layers = "all";
  QuerySpec queries;
  std::optional<std::int64_t> prompt_tokens, ctx;
  trace::Dtype dtype = trace::Dtype::f32;
  bool pre_rope = false;
  bool column_sums = true;
  bool speculated = false;
  bool attention_output = false;
  bool tokens_only = false;
  bool sketch = true;
  std::uint32_t seed = 0;  ///< of the sketches
  bool f32 = false;
  bool compress = false;
  bool check = true;
  bool force = false;
  bool quiet = false;
  int threads = 0;  ///< 0: all cores
};

struct ParsedOptions {
  std::optional<Options> options;  ///< absent after --help, --version or bad usage: exit with exit_code
  int exit_code = 0;
};

/// Prints help to stdout, usage errors to stderr.
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace kvbench::kvdump
