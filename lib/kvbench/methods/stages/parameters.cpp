// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/parameters.hpp>

#include <fmt/format.h>

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

void fields(ParamVisitor& visitor, PairLimit& limit) {
  visitor.real("max_pairs", limit.pairs, {.min = 1}, "pairs of rows that may be compared per head; above: infeasible");
}

void check_pairs(const PairLimit& limit, std::string_view method, double pairs, std::string_view remedy) {
  if (pairs <= limit.pairs) return;
  throw Infeasible(
      fmt::format("{} would compare {:.3g} pairs of rows, above its limit of {:.3g}; raise {}.max_pairs, or {}", method,
                  pairs, limit.pairs, method, remedy));
}

}  // namespace kvbench::methods
