// SPDX-License-Identifier: Apache-2.0
// What to record of a prompt and how to feed it: pure arithmetic on options, without a model.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kvbench::kvdump {

/// Which positions' queries are kept.
struct QuerySpec {
  enum Kind {
    tail,  ///< 128 positions before the end of the context (observation windows) and all from there on
    last,  ///< the last `count` positions
    all,
    every,   ///< each `count`-th position, counted back from the last one
    decode,  ///< as tail; the context ends `count` tokens before the end, and those tokens are fed one at a time
  };
  Kind kind = tail;
  std::int64_t count = 0;
};

/// "" (tail), "last:N", "all", "every:N", "decode:N", N >= 1. Throws Error.
QuerySpec parse_queries(std::string_view text);

/// "all", or numbers and ranges such as "0,1,8" and "0-3,29": sorted, each once. Throws Error naming the model's layer count.
std::vector<int> parse_layers(std::string_view text, int num_layers);

/// Where the context of a prompt of n tokens ends unless --prompt-tokens says so: decode:N: n - N; else n - min(256, n / 4).
/// Throws Error where decode:N leaves no context.
std::int64_t default_prompt_tokens(const QuerySpec& spec, std::int64_t num_tokens);

/// The positions that `spec` keeps, increasing, never empty. 1 <= prompt_tokens <= num_tokens.
std::vector<std::int64_t> query_positions(const QuerySpec& spec, std::int64_t num_tokens, std::int64_t prompt_tokens);

/// Sizes of the batches in which a prompt is fed: at most `batch` tokens each, decode steps one at a time.
std::vector<int> batch_sizes(const QuerySpec& spec, std::int64_t num_tokens, int batch);

}  // namespace kvbench::kvdump
