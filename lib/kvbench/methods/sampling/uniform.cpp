// SPDX-License-Identifier: Apache-2.0
// uniform: m of the n context tokens, drawn uniformly without replacement, each weighted n/m in numerator and
// denominator. The baseline of BalanceKV (arXiv 2502.07861, Fig. 2): sampling that ignores keys, values and queries.
//
// The m tokens are the first m of one random permutation of the context, so the sets of growing budgets are nested.
// Decoded tokens are kept exactly with weight 1. Deviation: the released script halves blocks instead; see
// `uniform-repo`. Parameters: none.
// Complexity: O(n log n) once to order the tokens, O(m d) per query. Memory: m (d + dv) numbers; the common weight n/m
// is one number.
#include <algorithm>

#include <kvbench/methods/sampling/methods.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>

namespace kvbench::methods {
namespace {

MakeCache prepare_uniform(const HeadPrompt& head, const NoParams&, Backend& backend) {
  return [head, &backend](Index budget, std::uint32_t seed) {
    const Index n = head.tokens();
    const Index m = std::min(budget, n);
    std::vector<TokenId> kept = random_tokens(Draws(seed, "uniform", head), n, m);
    std::vector<float> weight;
    if (m < n)
      weight.assign(static_cast<std::size_t>(m), static_cast<float>(static_cast<double>(n) / static_cast<double>(m)));
    return std::make_unique<KeptCache>(backend, head, KeptTokens{.ids = std::move(kept), .weight = std::move(weight)});
  };
}

}  // namespace

MethodInfo uniform_method() {
  return with_params<NoParams>(
      {
          .name = "uniform",
          .paper = "baseline of BalanceKV, arXiv 2502.07861, Fig. 2",
          .summary = "random tokens without replacement, weight n/m in both sums",
          .notes = "Every budget keeps a prefix of one random permutation, so budgets are nested.",
          .complexity = {.compress = {"O(n log n)", 1}},
          .kind = Kind::sampling,
          .seeded = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head"),
                         .weight_sum = WeightSum::context},
      },
      prepare_uniform);
}

}  // namespace kvbench::methods
