// SPDX-License-Identifier: Apache-2.0
// subgen-kcenter: keeps the tokens whose keys cover the context best, and the most recent tokens. SubGen, arXiv
// 2402.06082, section 3.2: the algorithm that the experiments of that paper measure (Table 1); its guarantees are those
// of `subgen`.
//
// A budget of B tokens is a window of r recent ones and k = B - r centres. Greedy k-center runs once, over the tokens
// of the context before its last r: the first of them is the first centre, and each further centre is the token
// farthest from all centres so far; ties: the lowest token. The centres are tokens of the context, nothing is merged,
// and attention over the B tokens is unweighted. Decoded tokens enter the window and the oldest leave it: the query at
// position t is answered by the centres and the last r tokens up to and including t. Tokens that leave the window later
// are not candidates: the text clusters once. Where the context has fewer than k tokens before the window, all of them
// are centres and the window is wider by the difference, so that no token is dropped before B tokens are held.
//
// Parameters:
//   recent     share of the budget for the window, default 0.5, rounded up and at least one token, so that the newest
//              token is always kept. The text gives only r + k, not the split
//   values     false (default) | true: cover concatenated keys and values instead of keys (Fig. 1 of the paper compares
//              how well the two cluster)
//   max_pairs  limit of n k, default 2^33 (no source; minutes); above, `infeasible`
// Complexity: O(n k d) once for each number of candidates n - r, more than an exact pass over fewer than k queries; O(B
// d) per query. Memory: B (d + dv) numbers.
#include <kvbench/methods/eviction/methods.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {
namespace {

struct SubgenKCenterParams {
  double recent = 0.5;
  bool values = false;
  PairLimit limit{.pairs = 0x1p33};  ///< lower than the default: each centre reads all points from memory
};

class KCenterCache : public HeadCache {
 public:
  /// Centres are tokens before `candidates`; the rest of the budget is the window.
  KCenterCache(Backend& backend, const HeadPrompt& head, std::vector<TokenId> centres, Index candidates, Index budget)
      : HeadCache(head, backend),
        candidates_(candidates),
        num_centres_(static_cast<Index>(centres.size())),
        centres_(backend.adopt(std::move(centres), 1, num_centres_)),
        window_(budget - num_centres_),
        context_(head.tokens()),
        tokens_(head.tokens()) {}

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { tokens_ += tokens.size(); }

  EntryTables entries(const QueryBlock& queries) const override {
    EntryTables tables;
    if (num_centres_ > 0) tables.push_back({.ids = centres_});
    if (queries.size() > 0 && tokens_ > candidates_) tables.push_back(window_table(queries));
    return tables;
  }

  Footprint footprint() const override { return kept_footprint(num_centres_ + width(), d_, dv_); }
  Protected protected_tokens() const override { return {.recent = std::min(window_, context_ - candidates_)}; }

 private:
  Index width() const { return std::min(window_, tokens_ - candidates_); }

  EntryTable window_table(const QueryBlock& queries) const {
    std::vector<Index> begins;
    for (const std::int32_t position : queries.positions) {
      begins.push_back(std::max(candidates_, std::min<Index>(position + 1, tokens_) - window_));
    }
    // Causal masking lets all queries whose windows begin at the same token share one row.
    const bool per_query = begins.front() != begins.back();
    if (!per_query) begins.resize(1);
    std::vector<TokenId> ids;
    for (const Index begin : begins) {
      for (Index i = begin; i < begin + width(); ++i) ids.push_back(i < tokens_ ? static_cast<TokenId>(i) : -1);
    }
    return {.per_query = per_query, .ids = backend_.adopt(std::move(ids), static_cast<Index>(begins.size()), width())};
  }

  Index candidates_;
  Index num_centres_;
  Buffer<const TokenId> centres_;
  Index window_;   ///< tokens
  Index context_;  ///< tokens of the context
  Index tokens_;   ///< of the stream so far
};

/// Rows (a_i, b_i).
Buffer<const float> concatenate(Backend& backend, const Buffer<const float>& a, const Buffer<const float>& b) {
  const std::vector<float> left = backend.read(a), right = backend.read(b);
  std::vector<float> both;
  both.reserve(left.size() + right.size());
  for (Index i = 0; i < a.rows(); ++i) {
    both.insert(both.end(), left.begin() + i * a.cols(), left.begin() + (i + 1) * a.cols());
    both.insert(both.end(), right.begin() + i * b.cols(), right.begin() + (i + 1) * b.cols());
  }
  return backend.adopt(std::move(both), a.rows(), a.cols() + b.cols());
}

/// Greedy k-center of the first tokens of the context, computed for the largest k requested; fewer centres are a
/// prefix.
class Centres {
 public:
  Centres(const HeadPrompt& head, const SubgenKCenterParams& params, Backend& backend)
      : limit_(params.limit),
        backend_(backend),
        points_(params.values ? concatenate(backend, head.keys, head.values) : head.keys) {}

  /// The first k centres of tokens 0 .. candidates - 1, in increasing order.
  std::vector<TokenId> first(Index candidates, Index k) {
    std::vector<TokenId>& order = orders_[candidates];
    if (std::ssize(order) < k) {
      check_pairs(limit_, "subgen-kcenter", static_cast<double>(candidates) * static_cast<double>(k),
                  "lower the budget");
      const auto taken = backend_.allocate<std::int32_t>(k);
      backend_.run(kernels::KCenter<Buffer>{
          .points = points_.slice(0, candidates), .order = taken, .radius2 = backend_.allocate<float>(k)});
      order = backend_.read(taken);
    }
    std::vector<TokenId> kept(order.begin(), order.begin() + k);
    std::ranges::sort(kept);
    return kept;
  }

 private:
  PairLimit limit_;
  Backend& backend_;
  Buffer<const float> points_;
  std::map<Index, std::vector<TokenId>> orders_;  ///< by number of candidates, which depends on the budget's window
};

MakeCache prepare(const HeadPrompt& head, const SubgenKCenterParams& params, Backend& backend) {
  const auto centres = std::make_shared<Centres>(head, params, backend);
  return [head, centres, share = params.recent, &backend](Index budget, std::uint32_t /*seed*/) {
    // 1e-9: a product such as 0.28 * 25 must not round up because of its rounding error.
    const auto rounded = static_cast<Index>(std::ceil(share * static_cast<double>(budget) - 1e-9));
    const Index recent = std::max<Index>(1, rounded), candidates = std::max<Index>(0, head.tokens() - recent);
    std::vector<TokenId> kept = centres->first(candidates, std::min(budget - recent, candidates));
    return std::make_unique<KCenterCache>(backend, head, std::move(kept), candidates, budget);
  };
}

void fields(ParamVisitor& visitor, SubgenKCenterParams& params) {
  visitor.real("recent", params.recent, {.min = 0, .max = 1},
               "share of the budget for the most recent tokens, rounded up");
  visitor.flag("values", params.values, "cluster keys and values together instead of keys");
  fields(visitor, params.limit);
}

}  // namespace

MethodInfo subgen_kcenter_method() {
  return with_params<SubgenKCenterParams>(
      {
          .name = "subgen-kcenter",
          .aliases = {"clustergen"},
          .paper = "SubGen, arXiv 2402.06082, section 3.2 and Table 1",
          .summary = "greedy k-center tokens of the context and a window of the most recent ones",
          .notes = "The text does not give the split between window and centres; the default is half each, with an odd "
                   "token for the window.",
          .complexity = {.compress = {"O(n k d), k = B - r", 1}},
          .kind = Kind::eviction,
          .properties = {.nested_budgets =
                             Property::no("a wider window leaves fewer candidates, and the centres change")},
      },
      prepare);
}

}  // namespace kvbench::methods
