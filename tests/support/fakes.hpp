// SPDX-License-Identifier: Apache-2.0
// Methods that together use every part of the contract. They are not in the registry; tests run them in its place.
#pragma once

#include <vector>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::testing {

/// Granularity layer: the heads share one budget of B tokens per head and one ranking by column sum, so that heads keep
/// different numbers of tokens. Decoded tokens are kept.
methods::MethodInfo fake_shared_layer();

/// Own values (as CaM): a window of the last B tokens; the value of a token that leaves it is added in halves to the
/// next two. Keys do not change. Every token changes the state, so takes() is one.
methods::MethodInfo fake_spread_values();

/// Own keys and values with degrees (as Chelsea): tokens 2i and 2i + 1 become their mean, weight 2, entry id 2i. An odd
/// last token is kept. Keeps ceil(n/2) entries at any budget. Decoded tokens are kept.
methods::MethodInfo fake_merge_pairs();

/// N and D differ (as SubGen): the even tokens with weight 2 in the numerator, the odd ones with weight 2 in the
/// denominator, and token 0 once more, weight 1, in the denominator. Decoded tokens are kept.
methods::MethodInfo fake_two_sets();

/// Observes (as H2O): keeps B tokens by their accumulated attention, summed over the query group; starts from the last
/// B of the context with scores of 0. A step attends to B + 1 tokens; then the lowest is evicted, ties to the oldest.
methods::MethodInfo fake_observer();

/// A table per query head and query: head g at position t is answered by the tokens j with j % 3 == (t + g) % 3, and by
/// token 0.
methods::MethodInfo fake_striped();

/// Granularity model: layer l of L has the plan 2 B (l + 1) / (L + 1), rounded down, at least 1; keeps the last tokens.
methods::MethodInfo fake_planned();

inline std::vector<methods::MethodInfo> all_fakes() {
  return {fake_shared_layer(), fake_spread_values(), fake_merge_pairs(), fake_two_sets(),
          fake_observer(),     fake_striped(),       fake_planned()};
}

}  // namespace kvbench::testing
