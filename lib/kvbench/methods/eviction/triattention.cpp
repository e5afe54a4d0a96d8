// SPDX-License-Identifier: Apache-2.0
// triattention: the tokens that the mean query of each query head, turned to positions ahead, is close to, counting how
// far queries scatter. arXiv 2604.04921; WeianMao/triattention, methods/triattention.py, per_layer_perhead_pruning.
// Channels are pairs f that RoPE turns. With mean qbar of the queries before RoPE and mean lengths E|q_f|, a key k has
// the mean over the offsets 1, 2, 4, ... of <qbar turned to n + offset, k>, plus the sum of (E|q_f| - |qbar_f|) |k_f|;
// z-scores over the tokens (normalize_scores); over the query group the largest counts.
// Parameters: reach: largest offset, 65536 (code); per, reduce: kv_head and max (code); sinks, recent: 0.
// Complexity: O((G + d) (n + m) d + n log n), m observed queries, at d = 128 about 1.7 / G exact passes of 256 queries:
// where RoPE turns halves, a product in fp64 brings pairs together. Memory: B (d + dv) numbers.
// Deviations: the context is compressed, once, where the code evicts decoded tokens every 128 steps and pins the
// prompt. Its default mode keeps the same tokens in all layers, by the mean of these scores over the layers:
// docs/scores.md has it, by kvbench.method_scores(). Queries are the trace's observed ones, or those of the text of
// --calibrate, as in the code. RoPE must be unscaled. Equal scores: the lower token; in the code random noise.
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/coming_queries.hpp>
#include <kvbench/methods/stages/score_only.hpp>
namespace kvbench::methods {

struct TriattentionParams : KvHeadSelection {
  TriattentionParams() { group = {GroupChoice::Per::kv_head, kernels::Reduction::max}; }
  Index reach = 65536;
};
void fields(ParamVisitor& visitor, TriattentionParams& params) {
  visitor.integer("reach", params.reach, {.min = 1}, "largest offset of the positions ahead, which are powers of 2");
  fields(visitor, params.group);
  fields(visitor, static_cast<KvHeadSelection&>(params));
}
MethodInfo triattention_method() {
  return score_only<TriattentionParams>(
      {.name = "triattention",
       .paper = "TriAttention, arXiv 2604.04921",
       .summary = "tokens that the mean query, turned to positions ahead, is close to",
       .notes = "One selection per kv head of each layer, of the context; queries of the trace or of --calibrate.",
       .complexity = {.compress = {"O((G + d) (n + m) d + n log n)", 1}},
       .needs = {Part::observed_queries},
       .calibrates_on = CalibratesOn::text,
       .properties = {.key_shift = Property::no("a shift of the keys changes the lengths of their pairs")}},
      [](const HeadPrompt& head, const TriattentionParams& params, Backend& backend) {
        return as_scores(ahead_scores(head, "triattention", params.reach, backend), backend, head.group);
      });
}

}  // namespace kvbench::methods
