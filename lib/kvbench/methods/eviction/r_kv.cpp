// SPDX-License-Identifier: Apache-2.0
// r-kv: the tokens that the last queries attend to and whose keys few others resemble; while decoding, a buffer of new
// tokens is added, and then they all compete. R-KV, arXiv 2505.24133, section 3; Zefan-Cai/R-KV rkv/utils.py and
// rkv/compression/r1_kv.py.
//
// Of the m tokens that are held, the last W are kept, and of the others the B - W with the largest
// lambda a - (1 - lambda) r:
//   a   logits of the last W queries, their maximum over the query group, softmax over those other tokens, mean over
//       the queries, maximum of `kernel` neighbours
//   r   softmax over all m tokens of the mean cosine with the keys of all m. A key's cosine with itself counts as 0,
//       and so does that with the last token to which it has one above 1/2, which keeps the newest of tokens that are
//       alike, or, where there is none, with the first token.
// The context is compressed at once. Where `buffer` tokens have been decoded since, and B + buffer are held, the query
// of the last one still attends to all, and then B are kept.
//
// Parameters: window W, 8 tokens; kernel 7; lambda 0.07 (code; 0.1 in the paper); buffer 128 tokens (code).
// Complexity: O(G W n d + n d + p d), p pairs of keys compared, once for all budgets: keys are compared from the last
// backwards until one is found, so that p is a few hundred n where most keys resemble one near the end (0.3 exact
// passes of 256 queries on the bundled trace), and n^2 where none does: 31 passes at n = 32768, d = 128, G = 4. Memory:
// (B + buffer) (d + dv) numbers, and G W queries.
// Deviations: held tokens stay in their order, as in the repository's FlashInfer form; its class holds them by score,
// so that other ones are neighbours later. Where a trace lacks queries of decoded tokens, the last W that it has count.
// Budgets up to W keep the last tokens. Equal scores: the lower token. Only retain_direction="last", the default.
#include <deque>

#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/eviction/window_votes.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/parameters.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

struct RkvParams {
  Index window = 8, kernel = 7, buffer = 128;
  double lambda = 0.07;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, RkvParams& params) {
  visitor.integer("window", params.window, {.min = 1}, "W: last queries that count, and last tokens that are kept");
  visitor.integer("kernel", params.kernel, {.min = 1}, "tokens of the maximum of attention along the cache, odd");
  visitor.real("lambda", params.lambda, {.min = 0, .max = 1}, "weight of attention; the rest is that of redundancy");
  visitor.integer("buffer", params.buffer, {.min = 1}, "decoded tokens after which the held ones compete");
  fields(visitor, params.limit);
}
void check(const RkvParams& params) {
  if (params.kernel % 2 == 0) throw Error("parameter 'r-kv.kernel' is {}; it must be odd", params.kernel);
  if (params.buffer < params.window)
    throw Error("parameter 'r-kv.buffer' is {}; it must be at least r-kv.window, {}", params.buffer, params.window);
}

constexpr float alike = 0.5f;            ///< keys of a larger cosine are
constexpr Index compared_at_once = 256;  ///< keys

/// The last of `tokens` to which each of the rows `waiting` has a cosine above 1/2, and that cosine; those that have
/// one leave `waiting`. The rows [n, d] are of length 1.
template <class Found>
void find_alike(const Buffer<const float>& rows, TokenRange tokens, std::vector<TokenId>& waiting, Found found,
                Backend& backend) {
  const std::vector<float> cosines =
      backend.read(inner_products(rows_at(rows, waiting, backend), rows.slice(tokens.first, tokens.count), backend));
  std::vector<TokenId> rest;
  for (std::size_t w = 0; w < waiting.size(); ++w) {
    const float* own = cosines.data() + static_cast<Index>(w) * tokens.count;
    Index last = tokens.count - 1;
    while (last >= 0 && !(own[last] > alike && tokens.first + last != waiting[w])) --last;
    if (last >= 0)
      found(waiting[w], tokens.first + last, own[last]);
    else if (tokens.first == 0)
      found(waiting[w], 0, own[0]);
    else
      rest.push_back(waiting[w]);
  }
  waiting = std::move(rest);
}

/// r of the keys [m, d].
TokenNumbers redundancy(const Buffer<const float>& keys, const PairLimit& limit, Backend& backend) {
  const Buffer<const float> rows = normalized(keys, backend);
  const auto m = static_cast<double>(keys.rows());
  TokenNumbers sums =
      m * on_host(projected(rows, mean_of_rows(rows, backend), backend), backend) - norms2(rows, backend);
  std::vector<TokenId> waiting = token_range(0, keys.rows());
  double pairs = 0;
  for (Index end = keys.rows(); end > 0 && !waiting.empty(); end -= std::min(end, compared_at_once)) {
    const Index first = std::max<Index>(0, end - compared_at_once);
    pairs += static_cast<double>(waiting.size()) * static_cast<double>(end - first);
    check_pairs(limit, "r-kv", pairs, "replay shorter contexts");
    const auto found = [&](TokenId row, Index token, float cosine) {
      if (row != token) sums[static_cast<std::size_t>(token)] -= static_cast<double>(cosine);
    };
    find_alike(rows, {first, end - first}, waiting, found, backend);
  }
  return softmax(sums / m);
}

/// a of the first `past` of the keys; queries [G*w, d].
TokenNumbers attention(const Buffer<const float>& keys, Index past, const Buffer<const float>& queries, Index w,
                       Index kernel, float scale, Backend& backend) {
  const auto largest = backend.allocate<float>(w, past);
  backend.run(kernels::ReduceRows<Buffer>{
      .rows = inner_products(queries, keys.slice(0, past), backend), .mode = kernels::Reduction::max, .out = largest});
  const TokenNumbers logits = double{scale} * on_host(largest, backend);
  const auto width = static_cast<std::size_t>(past);
  TokenNumbers mean(width);
  for (std::size_t i = 0; i < static_cast<std::size_t>(w); ++i)
    mean += softmax(logits[std::slice(i * width, width, 1)]) / static_cast<double>(w);
  const auto pooled = backend.allocate<float>(1, past);
  backend.run(kernels::PoolRows<Buffer>{
      .rows = as_scores(mean, backend), .mode = kernels::Pooling::max, .kernel = kernel, .out = pooled});
  return on_host(pooled, backend);
}

/// The queries of the last steps.
struct LastQueries {
  Index group = 1, count = 0;                   ///< G, w
  std::deque<Buffer<const float>> blocks = {};  ///< [G*m, d] each, m <= W, in their order

  /// Adds the last `wanted` queries of [G*m, d], and drops those that are no more among the last ones.
  void add(const Buffer<const float>& queries, Index wanted, Backend& backend) {
    const Index m = queries.rows() / group, taken = std::min(m, wanted);
    blocks.push_back(last_of(queries, taken, backend));
    count += taken;
    while (count - blocks.front().rows() / group >= wanted) {
      count -= blocks.front().rows() / group;
      blocks.pop_front();
    }
  }
  /// The last `wanted` of them, [G*wanted, d].
  Buffer<const float> last(Index wanted, Backend& backend) const {
    const auto all = backend.allocate<float>(group * count, blocks.front().cols());
    Index begin = 0;
    for (const Buffer<const float>& block : blocks) {
      const Index m = block.rows() / group;
      for (Index g = 0; g < group; ++g) copy_rows(block.slice(g * m, m), all.slice(g * count + begin, m), backend);
      begin += m;
    }
    return last_of(all, wanted, backend);
  }

 private:
  Buffer<const float> last_of(const Buffer<const float>& queries, Index taken, Backend& backend) const {
    const Index m = queries.rows() / group;
    std::vector<std::int32_t> rows;
    for (Index g = 0; g < group; ++g) {
      const std::vector<TokenId> own = token_range((g + 1) * m - taken, taken);
      rows.insert(rows.end(), own.begin(), own.end());
    }
    return gathered(queries, std::move(rows), backend);
  }
};

/// Of these tokens, those before the window: [1, past].
Buffer<const float> rkv_scores(const Buffer<const float>& keys, const LastQueries& queries, float scale,
                               const RkvParams& params, Backend& backend) {
  const Index past = std::max<Index>(0, keys.rows() - params.window), w = std::min(queries.count, params.window);
  if (past == 0) return backend.allocate<float>(1, 0);
  const TokenNumbers of_all = redundancy(keys, params.limit, backend);
  const TokenNumbers seen = attention(keys, past, queries.last(w, backend), w, params.kernel, scale, backend);
  return as_scores(params.lambda * seen - (1 - params.lambda) * of_all[std::slice(0, seen.size(), 1)], backend);
}

class RkvCache : public HeadCache {
 public:
  /// scores: of the context.
  RkvCache(const HeadPrompt& head, const RkvParams& params, Index budget, const Buffer<const float>& scores,
           LastQueries queries, Backend& backend)
      : HeadCache(head, backend),
        params_(params),
        budget_(budget),
        scale_(head.scale),
        tokens_(head.tokens()),
        held_(token_range(0, head.tokens())),
        keys_(backend, head.keys),
        queries_(std::move(queries)),
        fixed_{.recent = std::min({budget, params.window, head.tokens()})} {
    if (tokens_ > budget_) keep(scores);
  }

  Index takes(const TokenBlock& tokens) override {
    return std::min(tokens.size(), params_.buffer - decoded_ % params_.buffer);
  }
  void append(const TokenBlock& tokens) override {
    if (decoded_ > 0 && decoded_ % params_.buffer == 0 && std::ssize(held_) >= budget_ + params_.buffer)
      keep(rkv_scores(keys_.rows(), queries_, scale_, params_, backend_));
    copy_rows(tokens.keys, keys_.add(tokens.size()), backend_);
    for (Index i = 0; i < tokens.size(); ++i) held_.push_back(static_cast<TokenId>(tokens_++));
    decoded_ += tokens.size();
  }
  void announce(const QueryBlock& queries) override {
    if (queries.size() > 0) queries_.add(queries.queries, params_.window, backend_);
  }
  EntryTables entries(const QueryBlock&) const override {
    return {{.ids = backend_.adopt(std::vector(held_), 1, std::ssize(held_))}};
  }
  Footprint footprint() const override {
    const Index d = keys_.rows().cols();
    Footprint arrays = kept_footprint(std::ssize(held_), d, dv_);
    arrays.push_back({.name = "queries",
                      .element = Element::f16,
                      .rows = queries_.group * params_.window,
                      .cols = d,
                      .read = Read::never,
                      .content = Content::meta});
    return arrays;
  }
  Protected protected_tokens() const override { return fixed_; }

 private:
  /// The last tokens, and the best of the others.
  void keep(const Buffer<const float>& scores) {
    const Index all = std::ssize(held_), window = std::min(budget_, params_.window);
    std::vector<std::int32_t> places =
        backend_.read(best_columns(scores, 0, scores.cols(), std::min(budget_ - window, scores.cols()), backend_));
    for (Index place = all - window; place < all; ++place) places.push_back(static_cast<std::int32_t>(place));
    keys_ = GrowingRows(backend_, gathered(keys_.rows(), places, backend_));
    for (std::int32_t& place : places) place = held_[static_cast<std::size_t>(place)];
    held_ = std::move(places);
  }

  RkvParams params_;
  Index budget_;
  float scale_;
  Index tokens_, decoded_ = 0;  ///< of the stream so far; of those, behind the context
  std::vector<TokenId> held_;
  GrowingRows keys_;  ///< of the held tokens
  LastQueries queries_;
  Protected fixed_;
};

MakeCache prepare_rkv(const HeadPrompt& head, const RkvParams& params, Backend& backend) {
  check_window(head.data(), "r-kv", params.window);
  LastQueries queries{.group = head.group};
  queries.add(head.observed, params.window, backend);
  const Buffer<const float> scores = rkv_scores(head.keys, queries, head.scale, params, backend);
  return [=, &backend](Index budget, std::uint32_t) {
    return std::make_unique<RkvCache>(head, params, budget, scores, queries, backend);
  };
}

}  // namespace

MethodInfo r_kv_method() {
  return with_params<RkvParams>(
      {.name = "r-kv",
       .paper = "R-KV, arXiv 2505.24133, section 3",
       .summary = "tokens with attention from the last queries and keys unlike the others, anew after each buffer",
       .notes =
           "As released, with lambda 0.07; the paper has 0.1. The prompt is compressed at once, as in the code for "
           "transformers; its code for servers begins with the first buffer of decoded tokens.",
       .complexity = {.compress = {"O(G W n d + n^2 d)", 2},
                      .query = {"O((B + buffer) (d + dv))"},
                      .memory = {"(B + buffer) (d + dv)"}},
       .needs = {Part::observed_queries},
       .check_data = [](const ContextData& data,
                        const Params& params) { check_window(data, "r-kv", params.as<RkvParams>().window); },
       .whole_context = true,
       .properties = {.key_shift = Property::no("a shift of the keys changes their cosines"),
                      .nested_budgets =
                          Property::no("while decoding, a budget decides which tokens are left to compete")}},
      prepare_rkv);
}

}  // namespace kvbench::methods
