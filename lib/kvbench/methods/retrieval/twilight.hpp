// SPDX-License-Identifier: Apache-2.0
// twilight: the tokens that quest selects for a query are pruned to those that hold a share p of its attention, which
// is estimated with keys in 4 bits. How many answer therefore depends on the query. Twilight, arXiv 2502.02770, section
// 4; tsinghua-ideal/Twilight, twilight/pyimpl (configuration config_quest_twi.json).
//
// quest takes its pages with the budget B (8192 tokens in the released configuration). Logits of its tokens follow from
// keys of which each channel is round((k - min) / s) s + min, s = (max - min) / 15, min and max over the channels of a
// token. Of their softmax over quest's tokens, each query head keeps the largest weights until they sum to p, ties to
// the lower token. The exact keys of what is left answer.
//
// Parameters:
//   p     share of the estimated attention, default 0.85 (released configuration)
//   page, min_pages, last_page, per, reduce   as in quest.hpp; the released configuration has pages of 16 and at least
//         one, here at least 3 as in quest
// Complexity: that of quest with B tokens, and O(B d) per query and query head for their estimated logits.
// Memory: that of quest, and d / 2 + 4 bytes a token for the keys in 4 bits, of which B tokens are read per query head.
// Deviations: the released code leaves the first two layers whole (--dense-layers 2). Scale and minimum are stored in
// 16 bits. The released selection rounds a budget up to whole pages, quest down.
#pragma once

#include <kvbench/methods/retrieval/quest.hpp>

namespace kvbench::methods {

struct TwilightParams {
  double p = 0.85;
  QuestParams quest;
};
void fields(ParamVisitor& visitor, TwilightParams& params);

MethodInfo twilight_method();

}  // namespace kvbench::methods
