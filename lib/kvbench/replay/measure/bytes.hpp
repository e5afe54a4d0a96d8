// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// Sums a footprint. `entries_per_query`, `estimates_per_query`: rows that one query of the kv head reads of an array
/// with read = with_entry or with_estimate, over all its query heads; it reads no array more than once. `full` is the
/// exact cache of `tokens` tokens. A key takes d numbers, and a value dv beside it: 0 where it is a part of the key, so
/// that arrays of values take no memory.
Bytes account(const methods::Footprint& footprint, methods::Element kv, double entries_per_query, Index tokens, Index d,
              Index dv, double estimates_per_query = 0);

}  // namespace kvbench::replay
