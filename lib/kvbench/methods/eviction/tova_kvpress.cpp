// SPDX-License-Identifier: Apache-2.0
// tova@kvpress: the tokens to which the last query of the context attends most, the same ones for all kv heads of a
// layer, and the last token. TOVA, arXiv 2401.06104, section 3; TOVAPress of kvpress 0.5.4.
//
// The score is the softmax weight, the mean over all query heads of the layer. The last token is always kept.
// Parameters: sinks, recent: tokens that are always kept, default 0, beside the last one.
// Complexity: O(H G n d + n log n) for a layer of H kv heads. Memory: B (d + dv) numbers for each of them.
// Deviations: as in kvpress the last token is kept, and decoded tokens are never dropped; the original is `tova`.
// Weights have the scale of the model's attention, as in TOVAPress under eager attention; under others it divides
// logits by sqrt(d). Equal weights: the lower token.
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/eviction/window_votes.hpp>

namespace kvbench::methods {

MethodInfo tova_kvpress_method() {
  return with_scores(
      with_schema<KvHeadSelection>(score_only_row(
          {.name = "tova@kvpress",
           .paper = "NVIDIA kvpress, TOVAPress; after TOVA, arXiv 2401.06104",
           .summary = "tokens to which the last query attends most, the same for all kv heads of a layer",
           .notes =
               "The last token is kept and the prompt is compressed once; the original, `tova`, evicts at each step. "
               "Weights have the scale of the model's own attention, as in TOVAPress under eager attention; under "
               "others it divides by sqrt(d), which is another number for models that scale otherwise (Granite, some "
               "Gemma 3).",
           .complexity = {.compress = {"O(G n d + n log n)", 1}},
           .granularity = Granularity::layer,
           .needs = {Part::observed_queries},
           .check_data = [](const ContextData& data, const Params&) { check_window(data, "tova@kvpress", 1); }})),
      [](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
        const auto weights = as_scores(last_query_weights(heads, "tova@kvpress", LastToken::kept, backend), backend);
        return std::vector(heads.size(), token_scores(heads.front(), weights, params.as<KvHeadSelection>(), backend));
      });
}

}  // namespace kvbench::methods
