// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <apps/kvdump/options.hpp>
#include <apps/llama/model.hpp>

namespace kvbench::kvdump {

using llama::Model;

/// One tokenised prompt.
struct Prompt {
  std::string name;  ///< file name without extension
  std::vector<std::int32_t> tokens;
  std::int64_t prompt_tokens = 0;             ///< length of the context
  std::vector<std::int64_t> query_positions;  ///< positions whose queries are stored
  std::vector<int> batches;
  std::vector<trace::Span> spans = {};  ///< of the context: the messages of a conversation
};

/// Reads and tokenises every --text, --ids and --transcripts file. Throws Error with file and remedy.
std::vector<Prompt> read_prompts(const Options& options, const Model& model);

/// Writes the token ids of every --text file to the output, a line each. Throws as read_prompts(), IoError.
void write_tokens(const Options& options, const Model& model);

}  // namespace kvbench::kvdump
