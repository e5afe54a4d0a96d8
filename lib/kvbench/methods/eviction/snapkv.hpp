// SPDX-License-Identifier: Apache-2.0
// snapkv: the last W queries of the prompt vote, by their attention, for the tokens before them; votes are pooled over
// neighbours so that runs of tokens survive together. Kept are the winners and the W tokens of the voting window.
// SnapKV, arXiv 2404.14469, section 4 and its listing.
//
// For a context of n tokens and a budget B > W: the queries at the positions n - W .. n - 1 attend to all keys (causal inside
// the window, softmax over everything they see, fp32); their attention is summed over the W rows for each of the n - W tokens
// before the window, pooled there, and the top B - W are kept, ties to the lower token. B <= W keeps the last B tokens, B >= n
// all. Decoded tokens are kept exactly.
//
// Parameters:
//   window   W, tokens, default 32 (released LongBench configs; the released class has 64; Chelsea, arXiv 2506.11418, compares
//            with 100)
//   kernel   pooling width in tokens, odd, default 7 (LongBench configs; class default 5)
//   pooling  max (default, LongBench configs) | mean (class default; positions outside count as zeros) | none
//   per      query_head (default: the released code repeats keys over the group before it selects) | kv_head
//   reduce   mean (default, as kvpress does) | max | sum over the query group, per=kv_head only
//   order    reduce_first (default) | pool_first, per=kv_head only: max pooling and reduction do not commute
// Complexity: O(W n d) once for each query head, O(n log n) a budget. Memory: B (d + dv) numbers, for each query head where
// per=query_head.
// Deviations: none known. A trace must hold the queries of all W positions. Where the harness keeps tokens after the context
// exact (--protect-outside), the window is that of the whole prompt: those tokens are not kept twice, and each query's softmax
// runs over the context's tokens alone.
#pragma once

#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench {

struct SnapkvParams : WindowVoteParams {};
/// Throws Error for an even kernel.
void check(const SnapkvParams& params);

MethodInfo snapkv_method();

}  // namespace kvbench
