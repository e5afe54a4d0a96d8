// SPDX-License-Identifier: Apache-2.0
// Best matches of points among candidates.
#pragma once

#include "compare.hpp"

namespace kvbench::test {

struct MatchProblem {
  Index n, c, d;
  std::vector<float> points = {}, candidates = {}, bias = {};
  std::vector<std::int32_t> first = {}, last = {};  ///< candidates that each point sees; empty: all
  bool skip_self = false;
};

struct Matches {
  std::vector<std::int32_t> best;
  std::vector<float> score;
};

/// Points [begin, end) of the problem in one call.
inline Matches matches(Backend& b, const MatchProblem& p, Index begin, Index end) {
  const Index n = end - begin;
  kernels::BestMatch<Buffer> op{.points = b.adopt(p.points, p.n, p.d).slice(begin, n),
                                .candidates = b.adopt(p.candidates, p.c, p.d),
                                .skip_self = p.skip_self,
                                .best = b.allocate<std::int32_t>(n),
                                .score = b.allocate<float>(n)};
  if (!p.bias.empty()) op.bias = b.adopt(p.bias, p.c);
  if (!p.first.empty()) op.first = b.adopt(p.first, p.n).slice(begin, n);
  if (!p.last.empty()) op.last = b.adopt(p.last, p.n).slice(begin, n);
  b.run(op);
  return {b.read(op.best), b.read(op.score)};
}
inline Matches matches(Backend& b, const MatchProblem& p) { return matches(b, p, 0, p.n); }

}  // namespace kvbench::test
