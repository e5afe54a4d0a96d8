// SPDX-License-Identifier: Apache-2.0
// random: B of the n context tokens, drawn uniformly without replacement, weight 1. The lower reference of every plot:
// a selection that does not exceed it gains nothing from keys, values or queries.
//
// The B tokens are the first B of one random permutation of the context, so the sets of growing budgets are nested.
// Decoded tokens are kept exactly. It differs from `uniform` only in the weights: n/m there makes both sums unbiased, 1
// here treats the sample as the whole cache.
// Parameters: none.
// Complexity: O(n log n) once per seed to order the tokens, O(B d) per query. Memory: B (d + dv) numbers.
// Deviations: none (no paper defines it).
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>

namespace kvbench::methods {
namespace {

MakeCache prepare_random(const HeadPrompt& head, const NoParams&, Backend& backend) {
  return [head, &backend](Index budget, std::uint32_t seed) {
    return std::make_unique<KeptCache>(
        backend, head, KeptTokens{.ids = random_tokens(Draws(seed, "random", head), head.tokens(), budget)});
  };
}

}  // namespace

MethodInfo random_method() {
  return with_params<NoParams>(
      {
          .name = "random",
          .paper = "reference",
          .summary = "random tokens without replacement, weight 1: the lower reference of selection",
          .notes = "Every budget keeps a prefix of one random permutation, so budgets are nested.",
          .complexity = {.compress = {"O(n log n)", 1}},
          .kind = Kind::eviction,
          .seeded = true,
          .properties = {.head_permutation = Property::no("draws are keyed by the head")},
      },
      prepare_random);
}

}  // namespace kvbench::methods
