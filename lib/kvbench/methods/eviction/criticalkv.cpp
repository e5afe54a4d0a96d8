// SPDX-License-Identifier: Apache-2.0
// criticalkv(M): two stages. Half of the budget goes to the best scores of a method M, the rest to the largest products
// of score and size of what a token's value adds to the residual stream. CriticalKV, arXiv 2502.03805; code:
// NVIDIA/kvpress 0.5.5 (CriticalKVPress).
//
// Of a budget of B tokens, the tokens that M always keeps come first. With them, the int(first B) best scores of M are
// kept, at least one where first > 0; the others by (score + epsilon) |W_O v|, the norm averaged over the query group.
// Ties go to the lower token. Decoded tokens are kept exactly.
//
// Parameters:
//   first     share of the budget for the first stage, default 0.5 (kvpress: first_stage_ratio)
//   epsilon   in units of M's scores, default 1e-4 (kvpress); scores of methods that kvpress has are in its units
//   others    those of M, with one selection per kv head (per=kv_head)
// Complexity: O(G n dv s) per head for norms from a sketch of s columns, at dv = 128 and s = 64 about 0.3 exact passes
// of 256 queries; O(n log n) per budget. Memory: B (d + dv) numbers.
// Deviations: a trace holds no W_O, but its sketch (docs/damage.md), from which the Euclidean norm is estimated within
// 9 % per token at 64 columns; kveval has W_O itself. Paper and kvpress take the sum of magnitudes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench::methods {
namespace {

struct CriticalkvParams {
  double first = 0.5;
  double epsilon = 1e-4;
};
void fields(ParamVisitor& visitor, CriticalkvParams& params) {
  visitor.real("first", params.first, {.min = 0, .max = 1}, "share of the budget for the best scores alone");
  visitor.real("epsilon", params.epsilon, {.min = 0}, "added to a score before it is multiplied by the norm");
}

/// |W_O v| of each token, estimated from the sketch and averaged over the query heads.
std::vector<double> output_norms(const HeadPrompt& head, Backend& backend) {
  const Index n = head.tokens(), dv = head.values.cols();
  std::vector<double> norms(static_cast<std::size_t>(n), 0);
  for (Index g = 0; g < head.group; ++g) {
    const auto matrix = transposed(head.output_sketch.slice(g * dv, dv), backend);
    const std::vector<double> own = squared_norms(inner_products(head.values, matrix, backend), backend);
    for (std::size_t t = 0; t < norms.size(); ++t) norms[t] += std::sqrt(own[t]) / static_cast<double>(head.group);
  }
  return norms;
}

/// The scores of the second stage, for tokens that have one.
std::vector<float> second_scores(const HeadPrompt& head, const TokenScores& scores, double epsilon, Backend& backend) {
  const std::vector<double> norms = output_norms(head, backend);
  std::vector<float> out = backend.read(scores.scores);
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = static_cast<float>((double{out[t]} + epsilon) * norms[t]);
  return out;
}

MakeCache two_stages(const HeadPrompt& head, const TokenScores& scores, const CriticalkvParams& params,
                     Backend& backend) {
  if (!head.output_sketch.present())
    throw Unavailable(
        "criticalkv needs sketches of W_O, and there are none; replay a trace of kvdump or kvbench-dump-hf, which have "
        "them");
  return [=, second = second_scores(head, scores, params.epsilon, backend), &backend](Index budget,
                                                                                      std::uint32_t /*seed*/) {
    const Index n = head.tokens(), kept = std::min(budget, n);
    const Protected fixed = protected_within(scores, kept);
    const Index protects = fixed.sinks + fixed.recent;
    const auto part = static_cast<Index>(params.first * static_cast<double>(kept));
    const Index half = params.first > 0 ? std::max<Index>(1, part) : 0;
    const Index first = kept == n ? 0 : std::clamp<Index>(half - protects, 0, kept - protects);
    std::vector<float> merged = second;
    if (first > 0) {
      for (const TokenId id :
           backend.read(best_columns(scores.scores, scores.sinks, n - scores.recent, first, backend)))
        merged[static_cast<std::size_t>(id)] = std::numeric_limits<float>::max();
    }
    const Index count = std::ssize(merged);
    const TokenScores rule{backend.adopt(std::move(merged), 1, count), scores.sinks, scores.recent};
    return keep_best(head, rule, budget, backend);
  };
}

}  // namespace

Wrapper criticalkv_wrapper() {
  MethodInfo info = with_schema<CriticalkvParams>(score_only_row(
      {.name = "criticalkv",
       .paper = "CriticalKV, arXiv 2502.03805; NVIDIA kvpress, CriticalKVPress",
       .summary = "half of the budget by scores, the rest by scores times the size of a value after W_O",
       .notes =
           "The norm |W_O v| is the Euclidean one, in a replay estimated from the trace's sketch of W_O; paper and "
           "kvpress take the sum of magnitudes. epsilon is in units of the scores, which are those of kvpress.",
       .complexity = {.compress = {"O(G n dv s + n log n), and the scores of M", 1}},
       .needs = {Part::output_sketch}}));
  const auto select = [](std::span<const HeadPrompt> heads, const std::vector<TokenScores>& scores,
                         const Params& params, Backend& backend) {
    std::vector<MakeCache> caches;
    for (std::size_t h = 0; h < heads.size(); ++h)
      caches.push_back(two_stages(heads[h], scores[h], params.as<CriticalkvParams>(), backend));
    return each_head(std::move(caches));
  };
  return {std::move(info), select};
}

}  // namespace kvbench::methods
