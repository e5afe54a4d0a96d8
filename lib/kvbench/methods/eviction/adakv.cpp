// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/adakv.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <kvbench/methods/stages/competition.hpp>

namespace kvbench::methods {
namespace {

/// Equal shares and those that the scores earn, blended.
ShareOut blend(const AdakvParams& params) {
  return [alpha = params.alpha](const Competition& heads, Index each, Index /*protected_tokens*/) {
    const std::size_t count = heads.competitors();
    std::vector<double> parts;
    for (const Index won : heads.won(each * static_cast<Index>(count)))
      parts.push_back((1 - alpha) * static_cast<double>(won) + alpha * static_cast<double>(each));
    return rounded_shares(parts, heads);
  };
}

/// A guaranteed number of tokens per head, and the best of all others.
ShareOut safeguard(const AdakvParams& params) {
  return [alpha = params.alpha](const Competition& heads, Index each, Index protected_tokens) {
    const auto part = static_cast<Index>(std::floor(alpha * static_cast<double>(each + protected_tokens) + 1e-9));
    const Index safe = alpha > 0 ? std::max<Index>(1, part) : 0;
    return heads.won(each * static_cast<Index>(heads.competitors()), std::max<Index>(0, safe - protected_tokens));
  };
}

Wrapper wrapper(MethodInfo info, ShareOut (*share_out)(const AdakvParams&)) {
  info.granularity = Granularity::layer;
  info.complexity = {.compress = "O(H n log n) per layer, and the scores of M",
                     .query = "O(B (d + dv))",
                     .memory = "B (d + dv) on average",
                     .growth = {.compress = 1}};
  info = with_schema<AdakvParams>(std::move(info));
  const auto select = [share_out, name = info.name](std::span<const HeadPrompt> heads, std::vector<TokenScores> scores,
                                                    const Params& params, Backend& backend) {
    return compete(name, heads, std::move(scores), share_out(params.as<AdakvParams>()), backend);
  };
  return {std::move(info), select};
}

}  // namespace

void fields(ParamVisitor& visitor, AdakvParams& params) {
  visitor.real("alpha", params.alpha, {.min = 0, .max = 1},
               "share of the budget that each kv head has, whatever the scores of the others");
}

Wrapper adakv_wrapper() {
  return wrapper(
      {.name = "adakv",
       .paper = "Ada-KV, arXiv 2407.11550, sections 3 and 4",
       .summary = "the kv heads of a layer share one budget by their scores, blended with equal shares",
       .notes = "A head's share is (1 - alpha) times what its scores win in its layer, and alpha times an equal part. "
                "The released code rounds each share, so that its sum misses the budget by up to two tokens per head; "
                "here the sum is the budget, and the tokens that rounding down leaves go to the largest fractions.",
       .properties = {.nested_budgets = Property::no("rounded shares can fall by a token where the budget grows")}},
      blend);
}

Wrapper adakv_kvpress_wrapper() {
  return wrapper(
      {.name = "adakv@kvpress",
       .paper = "NVIDIA kvpress, AdaKVPress; after Ada-KV, arXiv 2407.11550",
       .summary = "the kv heads of a layer share one budget by their scores, above a guaranteed part",
       .notes = "The best int(alpha B) tokens of each head, at least one, are safe; the lowest scores of the layer are "
                "dropped. kvpress "
                "masks what it drops and saves no bytes; here the caches are ragged and hold the kept tokens alone."},
      safeguard);
}

}  // namespace kvbench::methods
