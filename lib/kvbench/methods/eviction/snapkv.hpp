// SPDX-License-Identifier: Apache-2.0
// snapkv: the last W queries of the prompt vote, by their attention, for the tokens before them; votes are pooled over
// neighbours so that runs of tokens are kept together. The tokens with the most votes and the W tokens of the voting
// window are kept. SnapKV, arXiv 2404.14469, section 4 and its listing.
//
// For a context of n tokens and a budget B > W: the queries at the positions n - W .. n - 1 attend to all keys (causal
// inside the window, softmax over all tokens of their mask, fp32). Their attention is summed over the W rows for each
// of the n - W tokens before the window and pooled there, and the top B - W are kept, ties to the lower token. B <= W
// keeps the last B tokens, B >= n all. Decoded tokens are kept exactly.
//
// Parameters:
//   window   W, tokens, default 32 (released LongBench configs; the released class has 64; Chelsea, arXiv 2506.11418,
//            compares with 100)
//   kernel   pooling width in tokens, odd, default 7 (LongBench configs; class default 5)
//   pooling  max (default, LongBench configs) | mean (class default; positions outside count as zeros) | none
//   per      kv_head (default): one selection for the query group, as in kvpress, so that the cache is stored once |
//            query_head: the released code, which repeats keys over the query group before it selects and stores the
//            copies
//   reduce   mean (default, as in kvpress) | max | sum over the query group, per=kv_head only
//   order    reduce_first (default) | pool_first, per=kv_head only: max pooling and reduction do not commute
// Complexity: O(W n d) once per query head, O(n log n) per budget. Memory: B (d + dv) numbers, with per=query_head for
// each query head.
// Deviations: none known. A trace must hold the queries of all W positions. Where the harness keeps tokens itself
// (--protect), the window is that of the whole prompt, those tokens are not kept twice, and each query's softmax runs
// over all tokens that it sees, as in the released code.
#pragma once

#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench::methods {

struct SnapkvParams : WindowVoteParams {};
/// Throws Error for an even kernel.
void check(const SnapkvParams& params);

MethodInfo snapkv_method();

/// snapkv@kvpress: the same with the defaults of kvpress's SnapKVPress: window 64, and the mean over 5 neighbours in
/// place of the maximum over 7.
struct SnapkvKvpressParams : SnapkvParams {
  SnapkvKvpressParams();
};
MethodInfo snapkv_kvpress_method();

}  // namespace kvbench::methods
