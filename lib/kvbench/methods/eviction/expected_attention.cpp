// SPDX-License-Identifier: Apache-2.0
// expected-attention: the tokens that normally distributed queries at the next positions are expected to attend to
// most, times the norm of their value. Expected Attention, arXiv 2510.00636, section 3; ExpectedAttentionPress of
// kvpress 0.5.4. Mean and covariance are those of the queries before RoPE, turned by the mean rotation of the next
// positions (stages/coming_queries.hpp); epsilon is added to the expected weights.
// Parameters, as in the press: sinks, default 4, whose queries and keys are left out; future: next positions, 512;
// epsilon: 0 (the leaderboard's entry has 0.01, and wraps the press in AdaKV).
// Complexity: O(G (n + m) d^2 + n log n), m observed queries, at d = 128 about an exact pass of 256 queries, as the
// quadratic term of each query head takes a product with [d, d] in fp64. Memory: B (d + dv) numbers.
// Deviations: of the trace's observed queries, not of all; with --calibrate of those of another text, as
// ExpectedAttentionStatsPress has it. Logits have the scale of the model's attention, those of the press 1 / sqrt(d).
// RoPE must be unscaled. Equal scores: the lower token.
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/coming_queries.hpp>
#include <kvbench/methods/stages/score_only.hpp>
namespace kvbench::methods {

struct ExpectedAttentionParams : SelectionParams {
  ExpectedAttentionParams() { sinks = 4; }
  Index future = 512;
  double epsilon = 0;
};
void fields(ParamVisitor& visitor, ExpectedAttentionParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that are kept, and whose queries are left out");
  visitor.integer("future", params.future, {.min = 1, .max = 65536},
                  "positions behind the context of the queries to come");
  visitor.real("epsilon", params.epsilon, {.min = 0}, "added to the expected weights before the norms of values");
}
MethodInfo expected_attention_method() {
  return score_only<ExpectedAttentionParams>(
      {.name = "expected-attention",
       .paper = "Expected Attention, arXiv 2510.00636, section 3",
       .summary = "tokens that queries to come are expected to attend to, times the norm of their value",
       .notes = "As in kvpress; of the queries that the trace holds, or of those of another text (--calibrate). Logits "
                "have the scale of the model's own attention, where the press divides by sqrt(d): Granite and some "
                "Gemma 3 scale otherwise.",
       .complexity = {.compress = {"O(G (n + m) d^2 + n log n)", 1}},
       .needs = {Part::observed_queries},
       .calibrates_on = CalibratesOn::prompt,
       .properties = {.key_shift = Property::no("a shift of the keys changes their quadratic term")}},
      [](const HeadPrompt& head, const ExpectedAttentionParams& params, Backend& backend) {
        const Index sinks = std::min(params.sinks, head.tokens()), n = head.tokens() - sinks;
        const TokenNumbers weights = expected_weights(head, "expected-attention", sinks, params.future, backend);
        return as_scores(behind(sinks, (weights + params.epsilon) * norms(head.values.slice(sinks, n), backend)),
                         backend);
      });
}

}  // namespace kvbench::methods
