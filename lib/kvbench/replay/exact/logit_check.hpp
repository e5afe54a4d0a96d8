// SPDX-License-Identifier: Apache-2.0
// Refuses heads whose logits overflow fp32: their softmax is undefined, and no figure about them means anything.
#pragma once

#include <span>

#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// The largest absolute value; 0 where there are no values.
float largest_magnitude(std::span<const float> values);

/// Throws Error with dataset, query head, position and token where a logit of the kv head is not finite in fp32. The
/// arguments are the largest_magnitude() of its keys and of the queries of its group: where they show that no logit can
/// overflow, as in every trace of a model, nothing is read.
void check_logits(const trace::Reader& reader, const HeadPlace& place, float largest_key, float largest_query);

}  // namespace kvbench::replay
