// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model.hpp"
#include "options.hpp"

namespace kvbench::kvdump {

/// One prompt, ready to be fed.
struct Prompt {
  std::string name;  ///< the file's name without its ending
  std::vector<std::int32_t> tokens;
  std::int64_t prompt_tokens = 0;             ///< where the context ends
  std::vector<std::int64_t> query_positions;  ///< whose queries are kept
  std::vector<int> batches;
};

/// Reads and tokenises every --text and --ids file. Throws Error naming file and remedy.
std::vector<Prompt> read_prompts(const Options& options, const Model& model);

}  // namespace kvbench::kvdump
