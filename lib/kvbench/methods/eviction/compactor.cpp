// SPDX-License-Identifier: Apache-2.0
// compactor: the tokens with the largest sum of two z-scores: attention within blocks of neighbours, without a causal
// mask, and the leverage of keys before RoPE, which needs no query. Compactor, arXiv 2507.08143, section 3, whose
// author has released two programs:
//   form=kvpress   CompactorPress of kvpress (leverage_press.py, non_causal_attention_press.py): sinks and recent
//                  tokens take no part. Blocks of 256; mean over the query group, times |v|, mean of 3 neighbours.
//                  Leverage of all tokens at once, a sketch for each head. blend: the share of the tokens that are
//                  dropped.
//   form=vllm      vnchari/compactor-vllm, compression/compactor.py: all tokens take part. Blocks of 128; the last one
//                  gets 1/128 for each query that it lacks to whole tiles of 64. Leverage and its z-scores in blocks of
//                  512, one sketch for all heads. blend: 0.5. The kv heads of a layer compete for H B tokens.
// Logits are not scaled. z-scores are over all kv heads of a layer. Leverage of the rows x of X, the centred keys times
// a Gaussian [d, sketch] / sqrt(sketch): x' (X'X + j)^-1 x, j = 0.01, in form=vllm 0.005.
//
// Parameters: form; blend: weight of leverage; chunk: tokens of a block of attention; sketch: 48, 0: none; sinks and
// recent: 8 and 4, in form=vllm 16 and 64.
// Complexity: O(G n chunk d + n (d + sketch) sketch + n log n), most of it for all budgets. At d = 128 and G = 4 about
// 0.8 exact passes of 256 queries, as each token attends to 256 others. Memory: B (d + dv) numbers on average.
// Deviations: equal scores: the lower token. Equal attention of all tokens, which compactor-vllm divides by 0: z = 0.
// kvpress 0.5.5 lets the padding of a last block attend; here, as in later versions, that block is shorter.
#include <algorithm>
#include <map>

#include <Eigen/Cholesky>

#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/coming_queries.hpp>
#include <kvbench/methods/stages/competition.hpp>
#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/stages/per_block.hpp>
#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench::methods {
namespace {

struct CompactorParams {
  enum class Form { kvpress, vllm } form = Form::kvpress;
  double blend = -1;
  Index chunk = 0, sketch = 48, sinks = -1, recent = -1;
};
void fields(ParamVisitor& visitor, CompactorParams& params) {
  visitor.choice("form", params.form, {"kvpress", "vllm"}, "whose rule; it sets the numbers below that are not given");
  visitor.real("blend", params.blend, {.min = -1}, "weight of leverage; -1: dropped share of the tokens, in vllm 0.5");
  visitor.integer("chunk", params.chunk, {.min = 0}, "tokens that attend to each other; 0: 256, in vllm 128");
  visitor.integer("sketch", params.sketch, {.min = 0}, "columns of the random sketch of the keys; 0: no sketch");
  visitor.integer("sinks", params.sinks, {.min = -1}, "first tokens that are always kept; -1: 8, in vllm 16");
  visitor.integer("recent", params.recent, {.min = -1}, "last tokens that are always kept; -1: 4, in vllm 64");
}

/// The first observed query of the context; throws Unavailable where the trace lacks one.
Index first_query(const ContextData& data) {
  const auto first = std::ranges::lower_bound(data.observed, 0);
  const Index found = std::ranges::lower_bound(data.observed, data.tokens) - first;
  if (found != data.tokens)
    throw Unavailable(
        fmt::format("compactor needs the queries of the whole context, and there are {} of these {}; "
                    "replay a trace that has them all (--queries all)",
                    found, data.tokens));
  return first - data.observed.begin();
}

/// x' (X'X + jitter)^-1 x for each of the rows x, less their mean, of X.
TokenNumbers leverage(const Buffer<const float>& rows, double jitter, Backend& backend) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Buffer<const float> centred = plus_row(rows, mean_of_rows(rows, backend), -1, backend);
  const Buffer<const float> columns = transposed(centred, backend);
  const TokenNumbers products = on_host(projected(columns, columns, backend), backend);
  const Index size = rows.cols();
  const Matrix gram =
      Eigen::Map<const Matrix>(std::begin(products), size, size) + jitter * Matrix::Identity(size, size);
  const Matrix root = gram.llt().matrixL().solve(Matrix::Identity(size, size));
  std::vector<float> whitening(static_cast<std::size_t>(root.size()));
  std::transform(root.data(), root.data() + root.size(), whitening.begin(),
                 [](double x) { return static_cast<float>(x); });
  return norms2(projected(centred, backend.adopt(std::move(whitening), size, size), backend), backend);
}

/// z-scores over the tokens of all heads.
void standardise(std::vector<TokenNumbers>& heads) {
  const std::size_t count = heads.front().size();
  TokenNumbers all(heads.size() * count);
  for (std::size_t h = 0; h < heads.size(); ++h) all[std::slice(h * count, count, 1)] = heads[h];
  all = z_scores(all);
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h] = all[std::slice(h * count, count, 1)];
}

/// The scores of a layer. What does not depend on the budget is computed once, leverage for each seed.
class CompactorScores {
 public:
  CompactorScores(std::span<const HeadPrompt> heads, const CompactorParams& params, Backend& backend)
      : heads_(heads.begin(), heads.end()), params_(params), backend_(backend) {
    const auto set = [](Index& value, Index otherwise) { value = value < 0 ? otherwise : value; };
    set(params_.sinks, vllm() ? 16 : 8);
    set(params_.recent, vllm() ? 64 : 4);
    if (params_.chunk == 0) params_.chunk = vllm() ? 128 : 256;
    require_all_heads(heads, "compactor compares the tokens of");
    const Index n = heads_.front().tokens();
    first_ = vllm() ? 0 : std::min(params_.sinks, n);
    count_ = vllm() ? n : std::max<Index>(0, n - first_ - params_.recent);
    for (const HeadPrompt& head : heads_) attention_.push_back(attention(head));
    standardise(attention_);
  }

  bool vllm() const { return params_.form == CompactorParams::Form::vllm; }
  const std::vector<HeadPrompt>& heads() const { return heads_; }

  std::vector<TokenScores> at(Index budget, std::uint32_t seed) {
    const double kept = static_cast<double>(budget) / static_cast<double>(heads_.front().tokens());
    const double blend = params_.blend >= 0 ? params_.blend : vllm() ? 0.5 : 1 - std::min(1.0, kept);
    const std::vector<TokenNumbers>& of_keys = computed_once(leverage_, seed, [&] { return all_leverage(seed); });
    std::vector<TokenScores> scores;
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const auto own = as_scores(behind(first_, attention_[h] + blend * of_keys[h]), backend_);
      scores.push_back(token_scores(heads_[h], own, {.sinks = params_.sinks, .recent = params_.recent}, backend_));
    }
    return scores;
  }

 private:
  static std::slice part(Index first, Index count) {
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(count), 1};
  }

  /// The attention that each token gets from the queries of its block, as its form combines it.
  TokenNumbers attention(const HeadPrompt& head) const {
    const Index first = first_query(head.data()), queries = std::ssize(head.observed_positions);
    TokenNumbers sums(static_cast<std::size_t>(count_));
    for (Index begin = 0; begin < count_; begin += params_.chunk) {
      const Index size = std::min(params_.chunk, count_ - begin), token = first_ + begin;
      std::vector<std::int32_t> rows;
      for (Index g = 0; g < head.group; ++g) {
        const std::vector<TokenId> own = token_range(g * queries + first + token, size);
        rows.insert(rows.end(), own.begin(), own.end());
      }
      const std::vector last(static_cast<std::size_t>(size), static_cast<std::int32_t>(size));
      const ScoredRows scored =
          scored_rows(rows_at(head.observed, rows, backend_), head.keys.slice(token, size), last, 1, backend_);
      const auto of_heads = backend_.allocate<float>(head.group, size);
      backend_.run(kernels::ColumnSums<Buffer>{scored.scores, scored.log_sum_exp, of_heads});
      const TokenNumbers all = on_host(of_heads, backend_);
      const Index missing = vllm() ? (64 - size % 64) % 64 : 0;
      TokenNumbers own(static_cast<double>(head.group * missing) / static_cast<double>(params_.chunk),
                       static_cast<std::size_t>(size));
      for (Index g = 0; g < head.group; ++g) own += all[part(g * size, size)];
      sums[part(begin, size)] = own;
    }
    if (vllm() || count_ == 0) return sums;
    const auto pooled = backend_.allocate<float>(1, count_);
    const TokenNumbers weighted = sums / double(head.group) * norms(head.values.slice(first_, count_), backend_);
    backend_.run(kernels::PoolRows<Buffer>{
        .rows = as_scores(weighted, backend_), .mode = kernels::Pooling::mean, .kernel = 3, .out = pooled});
    return on_host(pooled, backend_);
  }

  /// The keys before RoPE, times a sketch.
  Buffer<const float> sketched(const HeadPrompt& head, std::uint32_t seed) const {
    const Buffer<const float> keys = keys_before_rope(head, "compactor", backend_);
    if (params_.sketch == 0) return keys;
    const Draws draws(seed, "compactor", vllm() ? HeadPrompt{} : head);
    std::vector<float> scaled;
    for (const double x : gaussian_matrix(draws, 0, params_.sketch, keys.cols()))
      scaled.push_back(static_cast<float>(x / std::sqrt(double(params_.sketch))));
    return projected(keys, backend_.adopt(std::move(scaled), params_.sketch, keys.cols()), backend_);
  }

  /// The z-scores of leverage of each head.
  std::vector<TokenNumbers> all_leverage(std::uint32_t seed) const {
    std::vector<TokenNumbers> out(heads_.size(), TokenNumbers(static_cast<std::size_t>(count_)));
    std::vector<Buffer<const float>> rows;
    for (const HeadPrompt& head : heads_) rows.push_back(sketched(head, seed));
    const Index block = vllm() ? 512 : std::max<Index>(1, count_);
    for (Index begin = 0; begin < count_; begin += block) {
      const Index size = std::min(block, count_ - begin);
      std::vector<TokenNumbers> own;
      for (const auto& of_head : rows)
        own.push_back(leverage(of_head.slice(first_ + begin, size), vllm() ? 0.005 : 0.01, backend_));
      standardise(own);
      for (std::size_t h = 0; h < out.size(); ++h) out[h][part(begin, size)] = own[h];
    }
    return out;
  }

  std::vector<HeadPrompt> heads_;
  CompactorParams params_;
  Backend& backend_;
  Index first_ = 0, count_ = 0;                                  ///< tokens that have scores
  std::vector<TokenNumbers> attention_;                          ///< z-scores by head
  std::map<std::uint32_t, std::vector<TokenNumbers>> leverage_;  ///< by seed
};

MakeCaches prepare_compactor(std::span<const HeadPrompt> given, const CompactorParams& params, Backend& backend) {
  const auto scores = std::make_shared<CompactorScores>(given, params, backend);
  return [scores, &backend](Index budget, std::uint32_t seed) {
    const std::vector<TokenScores> own = scores->at(budget, seed);
    const auto best_of_all = [](const Competition& heads, Index each, Index) {
      return heads.won(each * static_cast<Index>(heads.competitors()));
    };
    if (scores->vllm()) return compete("compactor", scores->heads(), own, best_of_all, backend)(budget, seed);
    Caches caches;
    for (std::size_t h = 0; h < own.size(); ++h)
      caches.push_back(keep_best(scores->heads()[h], own[h], budget, backend));
    return caches;
  };
}

}  // namespace

MethodInfo compactor_method() {
  return with_params<CompactorParams>(
      score_only_row(
          {.name = "compactor",
           .paper = "Compactor, arXiv 2507.08143, section 3",
           .summary = "tokens with much attention from their neighbours and with keys that others do not span",
           .notes = "As in kvpress. compactor-vllm, form=vllm, scores in smaller blocks, without norms of values, and "
                    "lets heads compete.",
           .complexity = {.compress = {"O(G n chunk d + n (d + sketch) sketch + n log n)", 1}},
           .granularity = Granularity::layer,
           .needs = {Part::observed_queries},
           .check_data = [](const ContextData& data, const Params&) { first_query(data); },
           .seeded = true,
           .properties = {.key_shift = Property::no("one vector for keys behind RoPE differs before it by token"),
                          .head_permutation = Property::no("the sketch is drawn for the head"),
                          .nested_budgets = Property::no("the weight of leverage depends on the budget")},
           .variants = {{{"form", "vllm"}}},
           .draws =
               [](const Params& params) {
                 const auto& own = params.as<CompactorParams>();
                 return own.sketch > 0 && own.blend != 0;
               }}),
      prepare_compactor);
}

}  // namespace kvbench::methods
