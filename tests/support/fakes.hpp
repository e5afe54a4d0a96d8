// SPDX-License-Identifier: Apache-2.0
// Methods that exist to use every part of the contract. They are in no registry; whatever runs methods can be tested with them.
#pragma once

#include <vector>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::testing {

/// Granularity layer: the heads share one budget of B tokens a head and one ranking by column sum, so heads keep different
/// numbers of tokens. Decoded tokens are kept.
MethodInfo fake_shared_layer();

/// Own values (as CaM): a window of the last B tokens; the value of a token that leaves it is added in halves to the next two.
/// Keys stay. Every token changes the state, so append() takes one.
MethodInfo fake_spread_values();

/// Own keys and values with degrees (as Chelsea): tokens 2i and 2i + 1 become their mean, weight 2, entry id 2i. An odd last
/// token stays. Keeps ceil(n/2) entries whatever the budget. Decoded tokens are kept.
MethodInfo fake_merge_pairs();

/// N and D differ (as SubGen): the even tokens with weight 2 in the numerator, the odd ones with weight 2 in the denominator,
/// and token 0 once more, weight 1, in the denominator. Decoded tokens are kept.
MethodInfo fake_two_sets();

/// Observes (as H2O): keeps B tokens by the attention that they have gathered, summed over the group; starts from the context's
/// last B with nothing gathered. A step attends to B + 1 tokens; then the least is evicted, ties the oldest.
MethodInfo fake_observer();

/// A table of each query head and query: head g at position t is answered by the tokens j with j % 3 == (t + g) % 3, and by
/// token 0.
MethodInfo fake_striped();

/// Granularity model: layer l of L has the plan 2 B (l + 1) / (L + 1), rounded down, at least 1; keeps the last tokens.
MethodInfo fake_planned();

inline std::vector<MethodInfo> all_fakes() {
  return {fake_shared_layer(), fake_spread_values(), fake_merge_pairs(), fake_two_sets(),
          fake_observer(),     fake_striped(),       fake_planned()};
}

}  // namespace kvbench::testing
