// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/score_only.hpp>

#include <algorithm>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/stages/kept_cache.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

Buffer<const float> pool(const Buffer<const float>& rows, const SelectionParams& params, Backend& backend) {
  if (params.pooling == kernels::Pooling::none || rows.cols() == 0) return rows;
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::PoolRows<Buffer>{.rows = rows, .mode = params.pooling, .kernel = params.kernel, .out = out});
  return out;
}

Buffer<const float> reduced_and_pooled(const Buffer<const float>& scores, const SelectionParams& params,
                                       Backend& backend) {
  if (params.order == SelectionParams::Order::pool_first) {
    return group_scores(pool(scores, params, backend), 1, params.group, backend);
  }
  return pool(group_scores(scores, 1, params.group, backend), params, backend);
}

}  // namespace

void fields(ParamVisitor& visitor, KvHeadSelection& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that are always kept");
  visitor.integer("recent", params.recent, {.min = 0}, "last tokens that are always kept");
}

void fields(ParamVisitor& visitor, SelectionParams& params) {
  KvHeadSelection ends{params};
  fields(visitor, ends);
  params = ends;
  visitor.integer("kernel", params.kernel, {.min = 1}, "pooling width in tokens, odd");
  visitor.choice("pooling", params.pooling, {"none", "max", "mean"}, "pooling of the scores along the context");
  fields(visitor, params.group);
  visitor.choice("order", params.order, {"reduce_first", "pool_first"},
                 "order of reduction and pooling, per=kv_head only");
}

void check_selection(std::string_view method, const SelectionParams& params) {
  if (params.kernel % 2 == 0) throw Error("parameter '{}.kernel' is {}; it must be odd", method, params.kernel);
}

TokenScores token_scores(const HeadPrompt& head, const Buffer<const float>& scores, const SelectionParams& params,
                         Backend& backend) {
  const Index n = head.tokens(), recent = std::clamp(params.recent, n - scores.cols(), n);
  return {reduced_and_pooled(scores, params, backend), std::min(params.sinks, n - recent), recent};
}

Protected protected_within(const TokenScores& scores, Index kept) {
  const Index recent = std::min(kept, scores.recent);
  return {.sinks = std::min(scores.sinks, kept - recent), .recent = recent};
}

std::unique_ptr<CompressedCache> keep_best(const HeadPrompt& head, const TokenScores& scores, Index budget,
                                           Backend& backend, bool ragged) {
  const Index n = head.tokens(), kept = std::min(budget, n);
  const Protected fixed = protected_within(scores, kept);
  const Index chosen = kept - fixed.sinks - fixed.recent, rows = scores.scores.rows();
  KeptTokens tokens{.ids = token_range(0, fixed.sinks), .fixed = fixed, .ragged = ragged};
  const std::vector<TokenId> begin = tokens.ids, end = token_range(n - fixed.recent, fixed.recent);
  if (kept == n) {
    tokens.ids = token_range(0, n);
  } else if (chosen == 0) {
    tokens.ids.insert(tokens.ids.end(), end.begin(), end.end());
  } else {
    tokens.per_head = rows > 1;
    tokens.rows = rows;
    tokens.ids.clear();
    const std::vector<TokenId> best =
        backend.read(best_columns(scores.scores, scores.sinks, n - scores.recent, chosen, backend));
    for (Index r = 0; r < rows; ++r) {
      tokens.ids.insert(tokens.ids.end(), begin.begin(), begin.end());
      tokens.ids.insert(tokens.ids.end(), best.begin() + r * chosen, best.begin() + (r + 1) * chosen);
      tokens.ids.insert(tokens.ids.end(), end.begin(), end.end());
    }
  }
  return std::make_unique<KeptCache>(backend, head, std::move(tokens));
}

MethodInfo with_scores(MethodInfo info, decltype(MethodInfo::scores) scores) {
  info.prepare = [scores](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    std::vector<TokenScores> all = scores(heads, params, backend);
    std::vector<MakeCache> caches;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      caches.push_back([head = heads[h], of_head = std::move(all[h]), &backend](Index budget, std::uint32_t /*seed*/) {
        return keep_best(head, of_head, budget, backend);
      });
    }
    return each_head(std::move(caches));
  };
  info.scores = std::move(scores);
  return info;
}

MethodInfo score_only_row(MethodInfo info) {
  if (info.granularity == Granularity::query_head) info.complexity.memory = {"G B (d + dv)"};
  return info;
}

}  // namespace kvbench::methods
