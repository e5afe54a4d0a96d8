// SPDX-License-Identifier: Apache-2.0
// h2o-global: the simulation of H2O by masks that evaluations often use in its place: the columns of the context's full
// attention map with the largest sums, the same for every query, and a band of recent tokens below the diagonal. H2O,
// arXiv 2306.14048; the variant "based on global statistics" of its public evaluation code.
//
// A budget of B tokens keeps the top floor(heavy * B) columns of the context's causal map, recent ones included. They
// are never updated; ties go to the lower token. The query at position t is answered by them and by the tokens t -
// recent .. t, recent = B minus the heavy ones: with its own token at most B + 1, and fewer where heavy tokens lie in
// the band. In prefill the band is the last `recent` tokens of the context; the harness adds the tail.
//
// Parameters:
//   heavy   share of the budget for columns, default 0.5, rounded down (released scripts: equal ratios, truncated)
//   per     query_head (default: released code) | kv_head
//   reduce  mean (default) | max | sum of the column sums of the query group, per=kv_head only (no source)
// Complexity: O(n log n) once per budget, O(B) per query. Memory: B + 1 keys and values, for each query head where
// per=query_head.
// Deviations: the simulation also sums over the evaluated queries; here the columns are those of the context, so that
// no query contributes to the choice of the tokens that answer it.
#include <kvbench/methods/eviction/methods.hpp>

#include <algorithm>

#include <kvbench/methods/eviction/h2o.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct H2oGlobalParams {
  double heavy = 0.5;
  GroupChoice group;
};

class H2oGlobalCache : public HeadCache {
 public:
  /// `heavy` = the chosen columns of each query head, or of the kv head, [rows, count].
  H2oGlobalCache(const HeadPrompt& head, std::vector<TokenId> heavy, Index rows, Index recent, Backend& backend)
      : HeadCache(head, backend),
        heavy_(std::move(heavy)),
        rows_(rows),
        recent_(recent),
        context_(head.tokens()),
        tokens_(context_) {}

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { tokens_ += tokens.size(); }

  EntryTables entries(const QueryBlock& queries) const override {
    std::vector<Index> begins;  // of each query's band
    for (const std::int32_t position : queries.positions) begins.push_back(band_begin(position));
    if (begins.empty() || tokens_ == 0) return {};
    // Causal masking lets all queries whose bands begin at the same token share one row.
    const bool per_query = begins.front() != begins.back();
    if (!per_query) begins = {begins.back()};
    EntryTables tables = {band_table(begins, per_query)};
    if (!heavy_.empty()) tables.push_back(heavy_table(begins, per_query));
    return tables;
  }

  Footprint footprint() const override {
    const Index begin = band_begin(tokens_ > context_ ? tokens_ - 1 : tokens_);
    const auto outside = std::ranges::count_if(heavy_, [begin](TokenId id) { return id < begin; });
    return kept_footprint(outside + rows_ * (tokens_ - begin), d_, dv_);
  }
  Protected protected_tokens() const override { return {.recent = std::min(recent_, context_)}; }

 private:
  /// First token of the band. A query after all tokens of the cache, as in prefill, has its own token outside the
  /// cache.
  Index band_begin(Index position) const { return std::max<Index>(0, std::min(position, tokens_) - recent_); }

  EntryTable band_table(const std::vector<Index>& begins, bool per_query) const {
    const Index width = std::min(recent_ + 1, tokens_);
    std::vector<TokenId> ids;
    for (const Index begin : begins) {
      for (Index id = begin; id < begin + width; ++id) ids.push_back(id < tokens_ ? static_cast<TokenId>(id) : -1);
    }
    return {.per_query = per_query, .ids = backend_.adopt(std::move(ids), std::ssize(begins), width)};
  }

  /// The heavy columns, without those that lie in the band of the query.
  EntryTable heavy_table(const std::vector<Index>& begins, bool per_query) const {
    const Index count = std::ssize(heavy_) / rows_;
    std::vector<TokenId> ids;
    for (Index row = 0; row < rows_; ++row) {
      for (const Index begin : begins) {
        for (Index i = row * count; i < (row + 1) * count; ++i) {
          const TokenId id = heavy_[static_cast<std::size_t>(i)];
          ids.push_back(id < begin ? id : -1);
        }
      }
    }
    return {.per_head = rows_ > 1,
            .per_query = per_query,
            .ids = backend_.adopt(std::move(ids), rows_ * std::ssize(begins), count)};
  }

  std::vector<TokenId> heavy_;
  Index rows_, recent_;
  Index context_;  ///< tokens of the context
  Index tokens_;   ///< of the stream so far
};

MakeCache prepare(const HeadPrompt& head, const H2oGlobalParams& params, Backend& backend) {
  if (!head.column_sums.present()) {
    throw Unavailable(
        fmt::format("h2o-global needs the column sums up to the end of the context ({} tokens), and there are "
                    "none; replay a trace that has them (--column-sums)",
                    head.tokens()));
  }
  const Buffer<const float> scores = group_scores(head.column_sums, 1, params.group, backend);
  return [head, scores, share = params.heavy, &backend](Index budget, std::uint32_t) {
    const Index heavy = heavy_tokens(share, budget);
    const auto columns = best_columns(scores, 0, scores.cols(), std::min(heavy, head.tokens()), backend);
    return std::make_unique<H2oGlobalCache>(head, backend.read(columns), scores.rows(), budget - heavy, backend);
  };
}

void fields(ParamVisitor& visitor, H2oGlobalParams& params) {
  visitor.real("heavy", params.heavy, {.min = 0, .max = 1},
               "share of the budget for columns, rounded down; the rest is the band");
  fields(visitor, params.group);
}

}  // namespace

MethodInfo h2o_global_method() {
  return with_params<H2oGlobalParams>(
      {
          .name = "h2o-global",
          .paper = "H2O, arXiv 2306.14048, evaluation by masks",
          .summary = "columns of the context's attention map with the largest sums, and a band of recent tokens",
          .notes = "A simulation, not an eviction policy: columns are chosen over the whole map, so a token may be "
                   "read before it has received the attention that makes it heavy. The public code sums over evaluated "
                   "queries too; here the context's alone.",
          .complexity = {.compress = {"O(G n log n)", 1}, .memory = {"G B (d + dv)"}},
          .kind = Kind::eviction,
          .granularity = Granularity::query_head,
          .needs = {Part::column_sums},
          .properties = {.full_budget_exact =
                             Property::no("heavy columns may lie in the band, and then fewer than B tokens are read"),
                         .equal_bytes = Property::no("how many heavy columns lie in the band depends on the scores")},
      },
      prepare);
}

}  // namespace kvbench::methods
