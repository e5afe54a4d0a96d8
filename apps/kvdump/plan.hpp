// SPDX-License-Identifier: Apache-2.0
// Computes from the options which positions of a prompt are recorded and how it is divided into batches. Needs no
// model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kvbench::kvdump {

/// Positions whose queries are stored.
struct QuerySpec {
  enum Kind {
    tail,  ///< the last 128 positions of the context (observation windows) and all positions after it
    last,  ///< the last `count` positions
    all,
    every,   ///< each `count`-th position, counted back from the last one
    decode,  ///< as tail; the context ends `count` tokens before the end, and these tokens are decoded one at a time
  };
  Kind kind = tail;
  std::int64_t count = 0;
};

/// "" (tail), "last:N", "all", "every:N", "decode:N", N >= 1. Throws Error.
QuerySpec parse_queries(std::string_view text);

/// "all", or numbers and ranges such as "0,1,8" and "0-3,29": sorted and without duplicates. Throws Error with the
/// layer count of the model.
std::vector<int> parse_layers(std::string_view text, int num_layers);

/// Default of --prompt-tokens for a prompt of n tokens: n - N for decode:N, else n - min(256, n / 4).
/// Throws Error where decode:N leaves no context.
std::int64_t default_prompt_tokens(const QuerySpec& spec, std::int64_t num_tokens);

/// The positions of `spec`, increasing and not empty. 1 <= prompt_tokens <= num_tokens.
std::vector<std::int64_t> query_positions(const QuerySpec& spec, std::int64_t num_tokens, std::int64_t prompt_tokens);

/// Sizes of the batches of a prompt: at most `batch` tokens each, decode steps one at a time.
std::vector<int> batch_sizes(const QuerySpec& spec, std::int64_t num_tokens, int batch);

}  // namespace kvbench::kvdump
