// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/snapkv.hpp>

namespace kvbench::methods {
namespace {

Buffer<const float> score(const HeadPrompt& head, const SnapkvParams& params, Backend& backend) {
  return window_votes(head, "snapkv", params.window, backend);
}

}  // namespace

void check(const SnapkvParams& params) { check_selection("snapkv", params.selection); }

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
          .complexity = {.compress = "O(G W n d + n log n)", .growth = {.compress = 1}},
          .needs = {Part::observed_queries},
          .check_data = [](const ContextData& data,
                           const Params& params) { check_window(data, "snapkv", params.as<SnapkvParams>().window); },
          .variants = {{{"per", "query_head"}}},
      },
      score);
}

SnapkvKvpressParams::SnapkvKvpressParams() {
  window = 64;
  selection.pooling = kernels::Pooling::mean;
  selection.kernel = 5;
}

MethodInfo snapkv_kvpress_method() {
  return score_only<SnapkvKvpressParams>(
      {
          .name = "snapkv@kvpress",
          .paper = "NVIDIA kvpress, SnapKVPress; after SnapKV, arXiv 2404.14469",
          .summary = "snapkv with the window and pooling of kvpress, which many comparisons use",
          .notes = "kvpress: window_size 64, kernel_size 5, mean pooling, scores averaged over the query group. It is "
                   "snapkv[window=64;kernel=5;pooling=mean]; a row of its own, because at equal memory the window "
                   "changes the result as much as the choice between methods.",
          .complexity = {.compress = "O(G W n d + n log n)", .growth = {.compress = 1}},
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
