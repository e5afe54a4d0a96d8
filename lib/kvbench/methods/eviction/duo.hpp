// SPDX-License-Identifier: Apache-2.0
// duo, duo@kvpress: of all kv heads of the model those with the best scores are whole, the others stream: they keep
// the first and the last tokens. DuoAttention, arXiv 2410.10819, section 2.
//   duo          trained gates: a table of mit-han-lab/duo-attention, clipped to [0, 1] (duo_attn/utils.py)
//   duo@kvpress  early_attention() (stages/coming_queries.hpp) of the text of --calibrate; duo_attention_press.py,
//                on_the_fly_scoring, of kvpress 0.5.4
// With a budget of B tokens per head, N kv heads, n tokens of context and s = sinks + recent <= B, as many heads
// are whole as N (B - s) / (n - s), rounded down, ties to the lower layer and head; the released codes take a share
// of heads. A layer of H heads with f whole ones has the budget s + f (n - s) / H, rounded up. N counts the heads
// of all layers of the model, for duo@kvpress of those in the text, whichever are replayed; a limit of memory is
// met over the latter.
// Parameters: table: a line for each layer of the model, a number for each kv head; sinks: duo 64 (paper; tables
// were trained with 128), duo@kvpress 128 (code); recent: 256; positions: 500 (code).
// Complexity: O(n); duo@kvpress O((G m + n) d) for each head of the text, at d = 128 about 2 / G exact passes of 256
// queries to turn all keys back. Memory: B (d + dv) numbers per head on average, and 4 bytes for a length of its own.
// Deviations: the context is exact until it ends, where duo's code streams too. Streaming heads of duo then hold
// the newest `recent` tokens, where the code attends to one more; those of duo@kvpress keep decoded tokens. Equal
// gates: the code adds noise. kvpress takes 50 texts and all queries, here one text and its recorded queries; its
// test for norms of queries and keys (Qwen3, Gemma3) never holds, here they count. It masks keys and saves no
// bytes.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

MethodInfo duo_method();
MethodInfo duo_kvpress_method();

}  // namespace kvbench::methods
