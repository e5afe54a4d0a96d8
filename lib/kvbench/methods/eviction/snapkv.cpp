// SPDX-License-Identifier: Apache-2.0
// snapkv: the last W queries of the prompt vote, by their attention, for the tokens before them; votes are pooled over
// neighbours so that runs of tokens are kept together. The tokens with the most votes and the W tokens of the voting
// window are kept. SnapKV, arXiv 2404.14469, section 4 and its listing.
//
// For a context of n tokens and a budget B > W: the queries at the positions n - W .. n - 1 attend to all keys (causal
// inside the window, softmax over all tokens of their mask, fp32). Their attention is averaged over the W rows for each
// of the n - W tokens before the window (as in kvpress; the released code adds it up, which ranks alike) and pooled
// there, and the top B - W are kept, ties to the lower token. B <= W keeps the last B tokens, B >= n all. Decoded
// tokens are kept exactly.
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
// Deviations: of snapkv none are known. snapkv@kvpress has the scale of the model's attention, as SnapKVPress has in a
// model that runs with eager attention; with other implementations it divides logits by sqrt(d). A trace must hold the
// queries of all W positions. Where the harness keeps tokens itself (--protect), the window is that of the whole
// prompt, those tokens are not kept twice, and each query's softmax runs over all tokens that it sees, as in the
// released code.
#include <kvbench/methods/eviction/methods.hpp>

#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench::methods {
namespace {

struct SnapkvParams : WindowVoteParams {};

/// snapkv@kvpress: the same with the defaults of kvpress's SnapKVPress: window 64, and the mean over 5 neighbours in
/// place of the maximum over 7.
struct SnapkvKvpressParams : SnapkvParams {
  SnapkvKvpressParams() {
    window = 64;
    selection.pooling = kernels::Pooling::mean;
    selection.kernel = 5;
  }
};

Buffer<const float> score(const HeadPrompt& head, const SnapkvParams& params, Backend& backend) {
  return window_votes(head, "snapkv", params.window, backend);
}

void check(const SnapkvParams& params) { check_selection("snapkv", params.selection); }

}  // namespace

MethodInfo snapkv_method() {
  return score_only<SnapkvParams>(
      {
          .name = "snapkv",
          .paper = "SnapKV, arXiv 2404.14469, section 4",
          .summary =
              "tokens that the last prompt queries attend to, pooled over neighbours, and those queries' own tokens",
          .notes = "Paper and released LongBench configs: window 32, max pooling, kernel 7; the released class "
                   "defaults to window 64, mean pooling, kernel 5. Both select per query head over repeated keys "
                   "(per=query_head), so that the cache holds G copies; the default here is one selection per kv head "
                   "by the mean over its query group, as in kvpress.",
          .complexity = {.compress = {"O(G W n d + n log n)", 1}},
          .needs = {Part::observed_queries},
          .check_data = [](const ContextData& data,
                           const Params& params) { check_window(data, "snapkv", params.as<SnapkvParams>().window); },
          .variants = {{{"per", "query_head"}}},
      },
      score);
}

MethodInfo snapkv_kvpress_method() {
  return score_only<SnapkvKvpressParams>(
      {
          .name = "snapkv@kvpress",
          .paper = "NVIDIA kvpress, SnapKVPress; after SnapKV, arXiv 2404.14469",
          .summary = "snapkv with the window and pooling of kvpress, which many comparisons use",
          .notes = "kvpress: window_size 64, kernel_size 5, mean pooling, scores averaged over the query group. It is "
                   "snapkv[window=64;kernel=5;pooling=mean]; a row of its own, because at equal memory the window "
                   "changes the result as much as the choice between methods. Votes have the scale of the model's own "
                   "attention, as in SnapKVPress under eager attention; under others it divides by sqrt(d), "
                   "which is another number for models that scale otherwise (Granite, some Gemma 3).",
          .complexity = {.compress = {"O(G W n d + n log n)", 1}},
          .needs = {Part::observed_queries},
          .check_data =
              [](const ContextData& data, const Params& params) {
                check_window(data, "snapkv@kvpress", params.as<SnapkvKvpressParams>().window);
              },
      },
      [](const HeadPrompt& head, const SnapkvKvpressParams& params, Backend& backend) {
        return window_votes(head, "snapkv@kvpress", params.window, backend);
      });
}

}  // namespace kvbench::methods
