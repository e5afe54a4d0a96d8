// SPDX-License-Identifier: Apache-2.0
// What methods that choose by exact logits ask of a block of queries.
#pragma once

#include <string>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// Throws Unavailable where the block has no exact logits: a replay and kveval compute them for all methods, a model
/// that decodes with compressed caches does not.
inline void require_exact_logits(const QueryBlock& queries, const std::string& method) {
  if (!queries.scores.present())
    throw Unavailable(method +
                      " chooses by exact logits of its queries, which replay and kveval compute, and a model that "
                      "decodes does not");
}

}  // namespace kvbench::methods
