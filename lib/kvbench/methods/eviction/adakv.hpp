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
#pragma once

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

struct AdakvParams {
  double alpha = 0.2;
};
void fields(ParamVisitor& visitor, AdakvParams& params);

Wrapper adakv_wrapper();
Wrapper adakv_kvpress_wrapper();

}  // namespace kvbench::methods
