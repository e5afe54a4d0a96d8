// SPDX-License-Identifier: Apache-2.0
// duo, duo@kvpress: heads of two kinds. Of all kv heads of the model those with the largest scores are whole, the others
// stream: they keep the first and the last tokens. DuoAttention, arXiv 2410.10819, section 2.
//
//   duo          scores are trained gates: those of a table as mit-han-lab/duo-attention releases them, clipped to
//                [0, 1] (duo_attn/utils.py, load_attn_pattern). Streaming heads drop decoded tokens from their window
//   duo@kvpress  scores of another text (--calibrate), untrained: with the mean query and the mean key before RoPE at
//                every one of 500 positions, how early the last position attends (stages/coming_queries.hpp,
//                early_attention()). Streaming heads keep decoded tokens (duo_attention_press.py, on_the_fly_scoring)
//
// For a budget of B tokens per head, N kv heads in all layers of the model, a context of n tokens and streaming heads of
// s = sinks + recent tokens, the best floor(N (B - s) / (n - s)) heads are whole, ties to the lower layer and head: the
// released codes take the share of streaming heads instead. A layer with f whole heads of H has the budget s + f (n - s)
// / H, rounded up, so that the layers hold up to one token per head more than B on average; bytes are those of the
// tokens held. A limit of memory is met over the layers that are replayed, which may hold more or fewer whole heads than
// the others. B < s is `infeasible`.
//
// Parameters:
//   table       duo: file with a line for each layer of the model, a number for each kv head; no default
//   sinks       tokens, duo 64 (paper; the tables were trained with 128), duo@kvpress 128 (code)
//   recent      tokens, 256 (both)
//   positions   duo@kvpress: 500 (code)
// Complexity: duo O(n); duo@kvpress O((G m + n) d) per head of the text. Memory: B (d + dv) numbers per head on average,
// and a length of 4 bytes for each head of a layer with both kinds that does not stay as it is.
// Deviations: the context is exact until it ends, where released duo streams in prefill too; there a decoded token also
// sees the 256 before it, here 255. Equal gates: released duo adds noise. kvpress averages the scores of 50 texts of
// BookSum, here of one; its means are those of all queries, here of the recorded ones; its test for the norm of queries
// and keys (Qwen3, Gemma3) never holds, so that it takes them before it, here after. It masks keys and saves no bytes.
// The ranking is over the layers that the text has; others have B tokens per head.
#pragma once

#include <string>
#include <vector>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

/// What streaming heads keep of the context.
struct StreamingHeads {
  Index sinks = 64, recent = 256;
};

struct DuoParams : StreamingHeads {
  std::string table;
  std::vector<std::vector<float>> gates;  ///< of the table, by layer and kv head; none without a table
};
void fields(ParamVisitor& visitor, DuoParams& params);

struct DuoKvpressParams : StreamingHeads {
  DuoKvpressParams() { sinks = 128; }
  Index positions = 500;
};
void fields(ParamVisitor& visitor, DuoKvpressParams& params);

/// Throws Error, naming file and line, where the file cannot be read, a line has another number of numbers than the one
/// before, one of them is not finite, or there is none.
std::vector<std::vector<float>> read_gates(const std::string& path);

MethodInfo duo_method();
MethodInfo duo_kvpress_method();

}  // namespace kvbench::methods
