// SPDX-License-Identifier: Apache-2.0
// oracle-topk: for every query and query head, the B visible tokens with the largest exact logits. The selection reads
// the whole cache and therefore saves nothing; it is the upper reference of all methods that select tokens with weight
// 1.
//
// In prefill the candidates are the tokens of the context (the harness adds the exact tail); in decode also the decoded
// ones. Ties go to the lower token. A query with fewer than B visible tokens is answered by all of them. Parameters:
// none.
// Complexity: O(n) per query and query head in addition to the exact pass, whose logits it reads.
// Memory: the full cache on the slow tier, G B token ids on the fast one.
// Deviations: none (no paper defines it; Quest, arXiv 2406.10774, and ClusterKV, arXiv 2412.03213, measure their recall
// against this set).
#include <algorithm>

#include <kvbench/methods/retrieval/exact_logits.hpp>
#include <kvbench/methods/retrieval/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>

namespace kvbench::methods {
namespace {

/// The m bounds, limited to `limit`, repeated for every query head.
std::vector<std::int32_t> repeated(const std::vector<std::int32_t>& bounds, Index group, Index limit) {
  std::vector<std::int32_t> rows;
  for (Index g = 0; g < group; ++g) {
    for (const std::int32_t bound : bounds) rows.push_back(std::min(bound, static_cast<std::int32_t>(limit)));
  }
  return rows;
}

class OracleTopkCache : public HeadCache {
 public:
  OracleTopkCache(const HeadPrompt& head, Index budget, Backend& backend)
      : HeadCache(head, backend), tokens_(head.tokens()), budget_(budget) {}

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { tokens_ += tokens.size(); }

  EntryTables entries(const QueryBlock& queries) const override {
    require_exact_logits(queries, "oracle-topk");
    if (tokens_ == 0) return {};
    const Index rows = group_ * queries.size();
    const auto ids = backend_.allocate<std::int32_t>(rows, std::min(budget_, tokens_));
    backend_.run(kernels::TopK<Buffer>{
        .scores = queries.scores,
        .first = backend_.adopt(repeated(backend_.read(queries.first), group_, tokens_), rows),
        .last = backend_.adopt(repeated(backend_.read(queries.last), group_, tokens_), rows),
        .ids = ids,
    });
    return {{.per_head = true, .per_query = true, .ids = ids}};
  }

  Footprint footprint() const override {
    Footprint arrays = retrieved_footprint(tokens_, d_, dv_);
    arrays.push_back(chosen_tokens(group_ * std::min(budget_, tokens_)));
    return arrays;
  }

  TokenRange retrievable() const override { return {.count = tokens_}; }

 private:
  Index tokens_, budget_;
};

MakeCache prepare_oracle(const HeadPrompt& head, const NoParams&, Backend& backend) {
  return [head, &backend](Index budget, std::uint32_t /*seed*/) {
    return std::make_unique<OracleTopkCache>(head, budget, backend);
  };
}

}  // namespace

MethodInfo oracle_topk_method() {
  return with_params<NoParams>(
      {
          .name = "oracle-topk",
          .aliases = {"topk"},
          .paper = "reference",
          .summary = "the B largest exact logits of each query and query head: the upper reference of selection",
          .notes = "It reads every key to select: compare other methods with its error, not with its bytes.",
          .complexity = {.compress = {"O(1)"},
                         .query = {"O(n), on the logits of the exact pass", 1},
                         .memory = {"n (d + dv) + G B", 1}},
          .kind = Kind::retrieval,
          .granularity = Granularity::query_head,
          .streaming = true,
      },
      prepare_oracle);
}

}  // namespace kvbench::methods
