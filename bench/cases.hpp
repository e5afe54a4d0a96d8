// SPDX-License-Identifier: Apache-2.0
// The measured operations at the canonical shapes: one kv head, n = 32768 tokens, m = 256 queries, fp32.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::bench {

struct Bound {
  std::function<void()> run;                    ///< one call; safe to repeat
  std::function<std::vector<float>()> results;  ///< what the last call wrote
};

struct Case {
  std::string name;
  std::function<Bound(Backend&)> bind;  ///< the same seeded inputs on every back end
  double flops = 0;  ///< where the declared cost of the operation does not cover ranges of candidates; else 0
};

std::vector<Case> all_cases();

/// Searches among rows of keys that are given, one after the other, for torch/compare.py.
std::vector<Case> key_cases(const std::vector<float>& keys, Index columns);

}  // namespace kvbench::bench
