// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/group.hpp>

namespace kvbench::methods {

void fields(ParamVisitor& visitor, GroupChoice& choice) {
  visitor.choice("per", choice.per, {"query_head", "kv_head"},
                 "scope of a selection: each query head, or the kv head for its query group");
  visitor.choice("reduce", choice.reduce, {"mean", "max", "sum"},
                 "how scores of the query group are combined, per=kv_head only");
}

Buffer<const float> group_scores(const Buffer<const float>& scores, Index m, const GroupChoice& choice,
                                 Backend& backend) {
  if (choice.per_head() || scores.rows() == m) return scores;
  const auto out = backend.allocate<float>(m, scores.cols());
  backend.run(kernels::ReduceRows<Buffer>{.rows = scores, .mode = choice.reduce, .out = out});
  return out;
}

}  // namespace kvbench::methods
