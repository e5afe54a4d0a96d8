// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/stages.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace kvbench {
namespace {

class MadeByFunction : public Prepared {
 public:
  explicit MadeByFunction(MakeCache make) : make_(std::move(make)) {}
  std::unique_ptr<CompressedCache> make(Index budget, std::uint32_t seed) const override { return make_(budget, seed); }

 private:
  MakeCache make_;
};

}  // namespace

std::shared_ptr<const Prepared> prepared(MakeCache make) { return std::make_shared<MadeByFunction>(std::move(make)); }

std::vector<TokenId> token_range(Index first, Index count) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), static_cast<TokenId>(first));
  return ids;
}

std::vector<TokenId> random_order(const Draws& draws, Index tokens) {
  std::vector<std::pair<double, TokenId>> keyed(static_cast<std::size_t>(tokens));
  for (Index i = 0; i < tokens; ++i) keyed[static_cast<std::size_t>(i)] = {draws.uniform(i), static_cast<TokenId>(i)};
  std::ranges::sort(keyed);
  std::vector<TokenId> order(keyed.size());
  std::ranges::transform(keyed, order.begin(), [](const auto& pair) { return pair.second; });
  return order;
}

std::vector<TokenId> random_tokens(const Draws& draws, Index tokens, Index count) {
  std::vector<TokenId> kept = random_order(draws, tokens);
  kept.resize(static_cast<std::size_t>(std::min(count, tokens)));
  std::ranges::sort(kept);
  return kept;
}

Buffer<float> gathered(const Buffer<const float>& source, const Buffer<const std::int32_t>& ids, Backend& backend) {
  const auto out = backend.allocate<float>(ids.rows(), source.cols());
  backend.run(kernels::GatherRows<Buffer>{.source = source, .ids = ids, .out = out});
  return out;
}

Buffer<float> gathered(const Buffer<const float>& source, std::vector<std::int32_t> ids, Backend& backend) {
  const Index count = std::ssize(ids);
  return gathered(source, backend.adopt(std::move(ids), count), backend);
}

Buffer<const float> rows_at(const Buffer<const float>& source, const std::vector<std::int32_t>& ids, Backend& backend) {
  const auto breaks = [](std::int32_t a, std::int32_t b) { return b != a + 1; };
  if (ids.empty() || std::ranges::adjacent_find(ids, breaks) != ids.end()) return gathered(source, ids, backend);
  return source.slice(ids.front(), std::ssize(ids));
}

void copy_rows(const Buffer<const float>& source, const Buffer<float>& out, Backend& backend) {
  const Index count = source.rows();
  if (count == 0) return;
  backend.run(kernels::GatherRows<Buffer>{.source = source, .ids = backend.adopt(token_range(0, count), count), .out = out});
}

Buffer<float> inner_products(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend) {
  const auto out = backend.allocate<float>(a.rows(), b.rows());
  backend.run(kernels::InnerProducts<Buffer>{.a = a, .b = b, .out = out});
  return out;
}

Buffer<const std::int32_t> best_columns(const QueryBlock& queries, const Buffer<const float>& scores,
                                        const Buffer<const std::int32_t>& first, const Buffer<const std::int32_t>& last,
                                        Index k, Backend& backend) {
  struct LargestSoFar {
    Buffer<const std::int32_t> ids;
    Buffer<const float> scores;
  };
  const auto ids = backend.allocate<std::int32_t>(scores.rows(), k);
  kernels::TopK<Buffer> op{.scores = scores, .first = first, .last = last, .ids = ids};
  if (queries.memo != nullptr) {
    auto& known = queries.memo->get<LargestSoFar>(backend, [] { return LargestSoFar{}; });
    if (known.ids.present() && known.ids.cols() >= k) {
      const double alone = cost(op).flops;
      op.among = known.ids;
      op.among_scores = known.scores;
      queries.memo->save(alone - cost(op).flops);
    }
    const auto best = backend.allocate<float>(scores.rows(), k);
    op.best = best;
    known = {ids, best};
  }
  backend.run(op);
  return ids;
}

Footprint kept_footprint(Index rows, Index d, Index dv) {
  return {{.name = "keys", .rows = rows, .cols = d}, {.name = "values", .rows = rows, .cols = dv}};
}

KeptCache::KeptCache(Backend& backend, const HeadPrompt& head, KeptTokens kept, bool accumulate_f64)
    : backend_(backend),
      d_(head.keys.cols()),
      dv_(head.values.cols()),
      context_tokens_(head.tokens()),
      accumulate_f64_(accumulate_f64),
      fixed_(kept.fixed),
      notes_(std::move(kept.notes)) {
  fixed_.decoded = true;
  const Index width = static_cast<Index>(kept.ids.size()) / kept.rows;
  held_ = std::ranges::count_if(kept.ids, [](TokenId id) { return id >= 0; });
  context_.per_head = kept.per_head;
  context_.accumulate_f64 = accumulate_f64;
  context_.ids = backend.adopt(std::move(kept.ids), kept.rows, width);
  if (!kept.weight.empty()) {
    const Buffer<float> weight = backend.adopt(std::move(kept.weight), kept.rows, width);
    context_.weight_num = weight;
    context_.weight_den = weight;
  }
  if (!kept.weight_den.empty()) {
    context_.weight_den = backend.adopt(std::move(kept.weight_den), kept.rows, width);
    weights_ = 2;
  }
}

Index KeptCache::append(const TokenBlock& tokens) {
  appended_ += tokens.size();
  return tokens.size();
}

EntryTables KeptCache::entries(const QueryBlock&) const {
  EntryTables tables = {context_};
  if (appended_ > 0) {
    tables.push_back(
        {.ids = backend_.adopt(token_range(context_tokens_, appended_), 1, appended_), .accumulate_f64 = accumulate_f64_});
  }
  return tables;
}

Footprint KeptCache::footprint() const {
  // Decoded tokens are stored once for every row of the selection table: a per-head cache grows per head.
  const Index rows = held_ + appended_ * (context_.per_head ? context_.ids.rows() : 1);
  Footprint arrays = kept_footprint(rows, d_, dv_);
  if (context_.weight_num.present()) {
    arrays.push_back({.name = "weights", .element = Element::f32, .rows = held_, .cols = weights_, .meta = true});
  }
  return arrays;
}

}  // namespace kvbench
