// SPDX-License-Identifier: Apache-2.0
#include "case_tools.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace kvbench::bench {

namespace {

using namespace kernels;

constexpr Index kQueries = 256;

/// Query i of the last m tokens sees everything up to itself.
void causal_tail(Backend& b, Index m, Buffer<const std::int32_t>& first, Buffer<const std::int32_t>& last) {
  std::vector<std::int32_t> ends(static_cast<std::size_t>(m));
  std::iota(ends.begin(), ends.end(), static_cast<std::int32_t>(kTokens - m + 1));
  first = b.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(m), 0), m);
  last = b.adopt(std::move(ends), m);
}

Case exact_attention(std::string name, Index m, Index d, bool keep_scores) {
  return {std::move(name), [=](Backend& b) {
            ExactAttention<Buffer> op;
            op.queries = normal(b, m, d, 1);
            op.keys = normal(b, kTokens, d, 2);
            op.values = normal(b, kTokens, d, 3);
            causal_tail(b, m, op.first, op.last);
            op.scale = 1 / std::sqrt(static_cast<float>(d));
            op.out = b.allocate<float>(m, d);
            op.max = b.allocate<float>(m);
            op.log_sum_exp = b.allocate<float>(m);
            if (keep_scores) op.scores = b.allocate<float>(m, kTokens);
            return Bound{runner(b, op), keep_scores ? reader(b, op.out, op.max, op.log_sum_exp, op.scores)
                                                    : reader(b, op.out, op.max, op.log_sum_exp)};
          }};
}

Case weighted_attention(std::string name, Index width, bool per_query, bool scores) {
  return {std::move(name), [=](Backend& b) {
            constexpr Index d = 128;
            std::mt19937 engine(5);
            std::uniform_int_distribution<std::int32_t> token(0, kTokens - 1);
            std::vector<std::int32_t> ids(static_cast<std::size_t>((per_query ? kQueries : 1) * width));
            for (auto& id : ids) id = token(engine);
            for (auto row = ids.begin(); row != ids.end(); row += width)
              std::sort(row, row + width);  // as selections are
            WeightedAttention<Buffer> op;
            op.queries = normal(b, kQueries, d, 1);
            op.keys = normal(b, kTokens, d, 2);
            op.values = normal(b, kTokens, d, 3);
            causal_tail(b, kQueries, op.first, op.last);
            op.scale = 1 / std::sqrt(static_cast<float>(d));
            if (scores) op.scores = normal(b, kQueries, kTokens, 4);
            op.ids = b.adopt(std::move(ids), per_query ? kQueries : 1, width);
            op.per_query = per_query;
            op.max = b.allocate<float>(kQueries);
            op.den = b.allocate<float>(kQueries);
            op.num = b.allocate<float>(kQueries, d);
            const auto run = [&b, op]() mutable {
              b.fill(op.max, -std::numeric_limits<float>::infinity());
              b.fill(op.den, 0.0f);
              b.fill(op.num, 0.0f);
              b.run(op);
            };
            return Bound{run, reader(b, op.max, op.den, op.num)};
          }};
}

Case topk(Index k) {
  return {"topk k=" + std::to_string(k), [=](Backend& b) {
            TopK<Buffer> op;
            op.scores = normal(b, kQueries, kTokens, 1);
            causal_tail(b, kQueries, op.first, op.last);
            op.ids = b.allocate<std::int32_t>(kQueries, k);
            return Bound{runner(b, op), reader(b, op.ids)};
          }};
}

Case squared_distances() {
  return {"squared_distances c=410", [](Backend& b) {
            SquaredDistances<Buffer> op{normal(b, kTokens, 128, 1), normal(b, 410, 128, 2),
                                        b.allocate<float>(kTokens, 410)};
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

Case k_center(Index k) {
  return {"k_center k=" + std::to_string(k), [=](Backend& b) {
            KCenter<Buffer> op{clustered(b, kTokens, 128), 0, b.allocate<std::int32_t>(k), b.allocate<float>(k)};
            return Bound{runner(b, op), reader(b, op.order, op.radius2)};
          }};
}

Case leader_clusters() {
  return {"leader_clusters m'=512", [](Backend& b) {
            LeaderClusters<Buffer> op;
            op.points = clustered(b, kTokens, 128);
            op.radius = 30;
            op.representatives = b.allocate<float>(512, 128);
            op.count = b.allocate<std::int32_t>(1);
            op.labels = b.allocate<std::int32_t>(kTokens);
            const auto run = [&b, op]() mutable {
              b.fill(op.count, 0);
              b.run(op);
            };
            return Bound{run, reader(b, op.count, op.labels, op.representatives)};
          }};
}

Case column_sums() {
  return {"column_sums", [](Backend& b) {
            ColumnSums<Buffer> op;
            op.scores = normal(b, kQueries, kTokens, 1);
            auto log_sum_exp = b.allocate<float>(kQueries);
            b.fill(log_sum_exp, 11.0f);
            op.log_sum_exp = log_sum_exp;
            op.out = b.allocate<float>(1, kTokens);
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

Case squared_norms() {
  return {"squared_norms", [](Backend& b) {
            SquaredNorms<Buffer> op{normal(b, kTokens, 128, 1), b.allocate<double>(kTokens)};
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

Case gather() {
  return {
      "gather 8192 rows", [](Backend& b) {
        std::mt19937 engine(5);
        std::uniform_int_distribution<std::int32_t> token(0, kTokens - 1);
        std::vector<std::int32_t> ids(8192);
        for (auto& id : ids) id = token(engine);
        GatherRows<Buffer> op{normal(b, kTokens, 128, 1), b.adopt(std::move(ids), 8192), b.allocate<float>(8192, 128)};
        return Bound{runner(b, op), reader(b, op.out)};
      }};
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases = {exact_attention("exact_attention d=128", kQueries, 128, false),
                             exact_attention("exact_attention d=64", kQueries, 64, false),
                             exact_attention("exact_attention d=128 scores", kQueries, 128, true),
                             exact_attention("exact_attention d=64 scores", kQueries, 64, true),
                             exact_attention("exact_attention decode", 1, 128, false),
                             weighted_attention("weighted shared 8192", 8192, false, false),
                             weighted_attention("weighted shared 8192 scores", 8192, false, true),
                             weighted_attention("weighted per query 1024", 1024, true, true),
                             topk(1024),
                             squared_distances(),
                             k_center(64),
                             leader_clusters(),
                             column_sums(),
                             squared_norms(),
                             gather()};
  for (Case& c : selection_cases()) cases.push_back(std::move(c));
  for (Case& c : code_cases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace kvbench::bench
