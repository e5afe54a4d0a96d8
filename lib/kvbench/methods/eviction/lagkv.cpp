// SPDX-License-Identifier: Apache-2.0
// lagkv: behind the first tokens, the same number of tokens of each part of the context, those that fill the ranges of
// the next part most unevenly; while decoding, each part is compressed as soon as the next one is whole. LagKV, arXiv
// 2504.04704, section 3; AI-Lab-China-Merchants-Bank/LagKV lag_kv.py.
//
// A context of n tokens behind S sinks has P = (n - S) / L whole parts. Of each of the first P - 1 the k tokens with
// the largest sum of the scores of key and value (lag_scores.hpp) are kept, and the last part and the rest behind it,
// the tail, as a whole. k follows from the budget: (B - S - tail) / (P - 1), rounded down; the code has int(ratio L).
// When a decoded token fills a second part behind what is compressed, its own query still attends to both, and then k
// tokens of the first are kept (use_then_compress=True).
//
// Parameters:
//   sinks   S, tokens, default 16 (code)
//   lag     L, tokens, default 64 (README of the code, beside 128; the code's own default, 1024, is for contexts of
//           tens of thousands of tokens, since the last part is never cut)
// Complexity: O(n d^2) once for all budgets, at d = 128 about 2.5 exact passes of 256 queries, because a projection in
// fp64 scales the channels; O(B d) per query. Memory: at most B (d + dv) numbers for the context, and of each L decoded
// tokens k, beside those of the tail.
// Deviations: a channel without a range is NaN in the code and 0 here. A budget of the whole context drops nothing
// while decoding either. Equal scores: the lower token. Budgets below S + tail are infeasible, because the tail is
// never cut; score_v_ratio is 1, its default.
#include <kvbench/methods/eviction/lag_scores.hpp>
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct LagkvParams {
  Index sinks = 16, lag = 64;

  Index parts(Index n) const { return (n - sinks) / lag; }
  /// Scores [parts - 1, L] of the parts at the begin of these rows.
  Buffer<const float> scores(const Buffer<const float>& keys, const Buffer<const float>& values,
                             Backend& backend) const {
    const Index whole = keys.rows() / lag * lag;
    const TokenNumbers sum =
        lag_scores(keys.slice(0, whole), lag, backend) + lag_scores(values.slice(0, whole), lag, backend);
    return as_scores(sum, backend, whole / lag - 1);
  }
};

void fields(ParamVisitor& visitor, LagkvParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "S: first tokens that are always kept");
  visitor.integer("lag", params.lag, {.min = 1}, "L: tokens of a part; each is compared with the next");
}

/// k. Throws Infeasible where the budget does not hold what is never dropped.
Index kept_of_part(const LagkvParams& params, Index n, Index budget) {
  if (budget >= n) return params.lag;
  const Index parts = params.parts(n), whole = parts < 2 ? n : n - (parts - 1) * params.lag;
  if (budget < whole) {
    throw Infeasible(fmt::format(
        "lagkv never drops its {} sinks and the last part of {} tokens with the rest behind it, {} of these {} tokens; "
        "lower lagkv.lag or lagkv.sinks",
        std::min(params.sinks, n), params.lag, whole, n));
  }
  return (budget - whole) / (parts - 1);
}

class LagkvCache : public CompressedCache {
 public:
  /// kept: k; scores: those of the context, absent where it has fewer than two parts.
  LagkvCache(const HeadPrompt& head, const LagkvParams& params, Index kept, const Buffer<const float>& scores,
             Backend& backend)
      : backend_(backend), params_(params), kept_(kept), keys_(backend, head.keys), values_(backend, head.values) {
    const Index n = head.tokens(), sinks = std::min(params.sinks, n);
    held_ = token_range(0, n);
    tokens_ = n;
    drop_rows(sinks);
    if (scores.present()) compress(scores);
    fixed_ = {.sinks = sinks, .recent = std::min(keys_.rows().rows(), n - sinks)};
  }

  Index takes(const TokenBlock& tokens) override {
    const Index waiting = keys_.rows().rows(), after = waiting < 2 * params_.lag ? waiting : waiting - params_.lag;
    return std::min(tokens.size(), 2 * params_.lag - after);
  }
  void append(const TokenBlock& tokens) override {
    if (keys_.rows().rows() >= 2 * params_.lag) {
      compress(params_.scores(keys_.rows(), values_.rows(), backend_));
    }
    const Index sinks = std::clamp<Index>(params_.sinks - tokens_, 0, tokens.size()), rest = tokens.size() - sinks;
    copy_rows(tokens.keys.slice(sinks, rest), keys_.add(rest), backend_);
    copy_rows(tokens.values.slice(sinks, rest), values_.add(rest), backend_);
    for (Index i = 0; i < tokens.size(); ++i) held_.push_back(static_cast<TokenId>(tokens_++));
  }

  EntryTables entries(const QueryBlock&) const override {
    return {{.ids = backend_.adopt(std::vector(held_), 1, std::ssize(held_))}};
  }
  Footprint footprint() const override {
    return kept_footprint(std::ssize(held_), keys_.rows().cols(), values_.rows().cols());
  }
  Protected protected_tokens() const override { return fixed_; }

 private:
  /// Keeps the best of each part that has scores [parts, L], the first ones that wait.
  void compress(const Buffer<const float>& scores) {
    const std::vector<TokenId> best = backend_.read(best_columns(scores, 0, params_.lag, kept_, backend_));
    const Index first = std::ssize(held_) - keys_.rows().rows(), dropped = scores.rows() * params_.lag;
    std::vector<TokenId> held(held_.begin(), held_.begin() + first);
    for (Index i = 0; i < std::ssize(best); ++i) {
      held.push_back(
          held_[static_cast<std::size_t>(first + i / kept_ * params_.lag + best[static_cast<std::size_t>(i)])]);
    }
    held.insert(held.end(), held_.begin() + first + dropped, held_.end());
    held_ = std::move(held);
    drop_rows(dropped);
  }
  /// The first rows that wait no more.
  void drop_rows(Index count) {
    const Index rest = keys_.rows().rows() - count;
    keys_ = GrowingRows(backend_, keys_.rows().slice(count, rest));
    values_ = GrowingRows(backend_, values_.rows().slice(count, rest));
  }

  Backend& backend_;
  LagkvParams params_;
  Index kept_, tokens_ = 0;    ///< k; tokens of the stream so far
  GrowingRows keys_, values_;  ///< of the tokens that wait to be compressed, the last ones held
  std::vector<TokenId> held_;
  Protected fixed_;
};

MakeCache prepare_lagkv(const HeadPrompt& head, const LagkvParams& params, Backend& backend) {
  const Index n = head.tokens(), sinks = std::min(params.sinks, n);
  Buffer<const float> scores;
  if (params.parts(n) >= 2)
    scores = params.scores(head.keys.slice(sinks, n - sinks), head.values.slice(sinks, n - sinks), backend);
  return [=, &backend](Index budget, std::uint32_t) {
    return std::make_unique<LagkvCache>(head, params, kept_of_part(params, n, budget), scores, backend);
  };
}

}  // namespace

MethodInfo lagkv_method() {
  return with_params<LagkvParams>(
      {.name = "lagkv",
       .paper = "LagKV, arXiv 2504.04704, section 3",
       .summary = "the same number of tokens of each part, those that fill the ranges of the next part most unevenly",
       .notes =
           "The repository's rule: scores as they are, the tail beside the ratio, repeated while decoding; parts of 64 "
           "tokens here, 1024 in the code. kvpress decides by ranks in parts of 128, once: `lagkv@kvpress`.",
       .complexity = {.compress = {"O(n d^2)", 1}}},
      prepare_lagkv);
}

}  // namespace kvbench::methods
