// SPDX-License-Identifier: Apache-2.0
// One kv head in memory: what the harness knows of it, and what a method may see of it.
#pragma once

#include <algorithm>

#include <kvbench/methods/answer.hpp>
#include <kvbench/replay/plan.hpp>

namespace kvbench {

/// Token numbers as a method sees them (its context starts at 0 and ends where decoding starts) and as the trace numbers them.
/// They differ by the tokens that the harness protects at both ends of the context.
struct TokenMap {
  Index first = 0;   ///< protected tokens before the method's context
  Index middle = 0;  ///< tokens of the method's context
  Index last = 0;    ///< protected tokens after it

  bool identity() const { return first == 0 && last == 0; }
  Index to_global(Index local) const { return local + first + (local < middle ? 0 : last); }
  /// The number of local tokens below a global position.
  Index local_end(Index global_end) const;
};

struct Head {
  HeadPlace place;
  Index group = 1;
  Index window = 0;   ///< sliding window of the layer, 0 = none
  HeadTokens tokens;  ///< all tokens of the prompt
  TokenMap map;
  HeadPrompt prompt;                    ///< the method's view of the context
  std::vector<std::int32_t> positions;  ///< [m] of the queries to evaluate
  std::vector<float> queries;           ///< [G*m, d] row g*m + i
  std::vector<float> speculated;        ///< the same, empty where the trace has none
  std::vector<double> v_op, v_fro;      ///< [m] operator and Frobenius norm of V over the tokens that each query sees

  Index num_tokens() const { return tokens.keys.rows(); }
  /// The first token that a query at this position sees.
  Index first_seen(std::int32_t position) const { return window > 0 ? std::max<Index>(0, position + 1 - window) : 0; }
  Index queries_per_head() const { return static_cast<Index>(positions.size()); }
};

Head load_head(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place, Backend& backend);

}  // namespace kvbench
