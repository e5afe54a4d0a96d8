// SPDX-License-Identifier: Apache-2.0
// The harness protects tokens at both ends of the context, of which a method knows nothing but what a softmax needs.
#pragma once

#include <algorithm>

#include <kvbench/methods/contract/attend.hpp>

namespace kvbench::replay {

/// The first visible token of a query at this position.
inline Index first_seen_by(std::int64_t position, Index window) {
  return window > 0 ? std::max<Index>(0, position + 1 - window) : 0;
}

/// The map between the token numbers of a method (its context starts at 0 and ends where decoding starts) and those of
/// the trace. They differ by the tokens that the harness protects at both ends of the context.
struct TokenMap {
  Index first = 0;   ///< protected tokens before the method's context
  Index middle = 0;  ///< tokens of the method's context
  Index last = 0;    ///< protected tokens after it

  bool identity() const { return first == 0 && last == 0; }
  Index to_global(Index local) const { return local + first + (local < middle ? 0 : last); }
  /// The number of local tokens below a global position.
  Index local_end(Index global_end) const;
};

/// The table in the trace's token numbers.
methods::EntryTable to_global(methods::EntryTable table, const TokenMap& map, Backend& backend);

/// HeadPrompt::fixed_log_sum_exp of a view with observed queries. The protected tokens that a query sees are
/// consecutive among all of them.
Buffer<const float> fixed_log_sum_exp(const methods::HeadTokens& tokens, const TokenMap& map,
                                      const methods::HeadPrompt& view, Backend& backend);

/// The block in the method's token numbers. visible_first: `block.first` on the host; `scores`: [R, n].
methods::QueryBlock localize(const methods::QueryBlock& block, std::span<const std::int32_t> visible_first,
                             const HostView<float>& scores, const TokenMap& map, Backend& backend);

}  // namespace kvbench::replay
