// SPDX-License-Identifier: Apache-2.0
// adakv(M): the kv heads of a layer share one budget by the scores of a method M. A head whose attention is spread
// keeps more tokens, one whose attention is concentrated fewer; within a head M chooses. Ada-KV, arXiv 2407.11550,
// sections 3 and 4; code: FFY0/AdaKV (adaptive_snapkv/monkeypatch/snapkv_utils.py), NVIDIA/kvpress (AdaKVPress).
//
// H kv heads with a budget of B tokens each hold H B together. The tokens that M always keeps, such as the window of
// snapkv, are kept in every head. Of the b others per head:
//   adakv           head h keeps (1 - alpha) c_h + alpha b; c_h of the H b largest scores of the layer are its own
//   adakv@kvpress   the best int(alpha B) tokens of a head, at least one where alpha > 0, are safe, and those that M
//                   always keeps are among them; the rest of the H B tokens are the largest scores of the layer
// Ties go to the lower head, then to the lower token. A budget of at least n keeps all tokens, one that M's protected
// tokens fill keeps them alone. Decoded tokens are kept exactly. A layer never holds more than H B tokens of the
// context; --budget 25%mem limits the mean over its heads.
//
// Parameters:
//   alpha    share of the budget that is divided equally, default 0.2 (released: 0.2 where query heads share kv heads,
//            else 0.5; kvpress: alpha_safeguard = 0.2); alpha = 1 is M for adakv
//   others   those of M, with one selection per kv head (per=kv_head)
// Complexity: O(H n log n) per layer beside the scores of M. Memory: H B (d + dv) numbers per layer, and the length of
// each head, 4 bytes, as its cache is ragged.
// Deviations: the released code truncates alpha b and rounds each head's share to the nearest number, so that the sum
// misses the budget by up to two tokens per head. Here shares are exact, rounded down, and the rest goes to the heads
// with the largest fractions, so that the sum is H B: a head differs from the released rule by two tokens at most, and
// where alpha b is whole and the released sum is H B, not at all. Not ported: `normalize`, which the released
// scripts leave off, and `skip`, which is 0 there. kvpress masks the dropped keys and saves no bytes; here they are not
// held.
#include <algorithm>
#include <utility>

#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/competition.hpp>

namespace kvbench::methods {
namespace {

struct AdakvParams {
  double alpha = 0.2;
};
void fields(ParamVisitor& visitor, AdakvParams& params) {
  visitor.real("alpha", params.alpha, {.min = 0, .max = 1},
               "share of the budget that each kv head has, whatever the scores of the others");
}

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
    const auto part = static_cast<Index>(alpha * static_cast<double>(each + protected_tokens));  // as kvpress cuts
    const Index safe = alpha > 0 ? std::max<Index>(1, part) : 0;
    return heads.won(each * static_cast<Index>(heads.competitors()), std::max<Index>(0, safe - protected_tokens));
  };
}

Wrapper wrapper(MethodInfo info, ShareOut (*share_out)(const AdakvParams&)) {
  info.granularity = Granularity::layer;
  info.complexity = {.compress = {"O(H n log n) per layer, and the scores of M", 1},
                     .memory = {"B (d + dv) on average"}};
  info = with_schema<AdakvParams>(std::move(info));
  const auto select = [share_out, name = info.name](std::span<const HeadPrompt> heads, std::vector<TokenScores> scores,
                                                    const Params& params, Backend& backend) {
    return compete(name, heads, std::move(scores), share_out(params.as<AdakvParams>()), backend);
  };
  return {std::move(info), select};
}

}  // namespace

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
