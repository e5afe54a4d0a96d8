// SPDX-License-Identifier: Apache-2.0
// scores:FILE.h5: keeps the tokens with the best scores of a file, which hold for the contexts of one trace: those of
// KVzip (arXiv 2505.23416), KVzap, or any scorer that needs more than a trace holds. docs/scores.md has the file.
//
// For a budget of B tokens per kv head, H kv heads and L layers:
//   scope=head    each head keeps its best B tokens
//   scope=layer   the heads of a layer keep the best H B tokens of the layer
//   scope=model   all heads keep the best L H B tokens of the model. The budget of a layer, the mean over its heads, is
//                 rounded to whole tokens so that the mean over layers is B; a layer keeps 1 token at least
// The last `recent` and the first `sinks` tokens of every head come first; ties go to the lower layer, head and token.
// Decoded tokens are kept exactly.
//
// Parameters:
//   scope    head (default) | layer | model. KVzip: model ("pair"); layer is `layerwise` of kvpress, head is "uniform"
//   sinks    tokens, default 0 (KVzip in kvpress: 4)
//   recent   tokens, default 0
// Complexity: scope=head O(n log n) per head, else O(H n log n) per layer or O(L H n log n) once. Memory: B (d + dv)
// numbers per head on average, and a length of 4 bytes where heads differ.
// Deviations: KVzip keeps scores strictly above the L H B-th largest one, so that equal scores are dropped together;
// here the budget is met. Layers outside the file take no part, and have B tokens per head.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

/// The scores of a layer, finite.
struct LayerScores {
  Index heads = 0, tokens = 0;  ///< kv heads, tokens from the start of the prompt
  std::vector<float> values;    ///< [heads, tokens]
};

struct GivenScores {
  std::string file, trace_sha256;
  std::map<std::string, std::map<std::int64_t, LayerScores>> prompts;  ///< by name in the trace, by number of the layer
};

/// The method that keeps tokens by these scores. Its name is `name`, and it runs on the trace alone.
MethodInfo given_scores_method(const std::string& name, GivenScores scores);

}  // namespace kvbench::methods
