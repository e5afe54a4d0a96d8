// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "case_tools.hpp"

namespace kvbench::bench {

namespace {

using namespace kernels;

constexpr Index kDims = 128;

/// The bias with which the largest product belongs to the nearest row.
Buffer<const float> minus_half_norms(Backend& b, const Buffer<const float>& rows) {
  const auto norms2 = b.allocate<double>(rows.rows());
  b.run(SquaredNorms<Buffer>{.rows = rows, .out = norms2});
  std::vector<float> bias;
  for (const double norm2 : b.read(norms2)) bias.push_back(static_cast<float>(-norm2 / 2));
  return b.adopt(std::move(bias), rows.rows());
}

/// Nearest of the first c of n tokens; all scores are exact in fp32.
Case assignment(Index n, Index c) {
  return {"best_match k-means c=" + std::to_string(c), [=](Backend& b) {
            const Buffer<float> points = clustered(b, n, kDims);
            BestMatch<Buffer> op{.points = points,
                                 .candidates = points.slice(0, c),
                                 .bias = minus_half_norms(b, points.slice(0, c)),
                                 .best = b.allocate<std::int32_t>(n),
                                 .score = b.allocate<float>(n)};
            return Bound{runner(b, op), reader(b, op.best, op.score)};
          }};
}

using Rows = std::function<Buffer<const float>(Backend&)>;

/// One step of Lloyd's algorithm from c rows at equal distances: nearest centroid, then means. Where near ties may
/// decide labels, the scores are compared alone.
Case lloyd_step(std::string name, const Rows& rows, Index c, bool exact) {
  return {std::move(name), [=](Backend& b) {
            const Buffer<const float> points = rows(b);
            const Index n = points.rows(), d = points.cols();
            const auto centres = b.allocate<float>(c, d);
            std::vector<std::int32_t> start;
            for (Index i = 0; i < c; ++i) start.push_back(static_cast<std::int32_t>(exact ? i : i * n / c));
            b.run(GatherRows<Buffer>{.source = points, .ids = b.adopt(std::move(start), c), .out = centres});
            MeanRows<Buffer> means{.rows = points, .out = b.allocate<float>(c, d), .mass = b.allocate<float>(c)};
            const auto labels = b.allocate<std::int32_t>(n);
            const auto score = b.allocate<float>(n);
            means.labels = labels;
            const auto run = [=, &b] {
              b.run(BestMatch<Buffer>{.points = points,
                                      .candidates = centres,
                                      .bias = minus_half_norms(b, centres),
                                      .best = labels,
                                      .score = score});
              b.run(means);
            };
            return Bound{run, exact ? reader(b, labels, means.out, means.mass) : reader(b, score)};
          }};
}

/// Every second row is matched to the most similar of the others.
Case whole_matching(std::string name, const Rows& rows) {
  return {std::move(name), [=](Backend& b) {
            const Buffer<const float> all = rows(b);
            const Index n = all.rows() / 2, d = all.cols();
            const auto half = [&](std::int32_t first) {
              std::vector<std::int32_t> ids;
              for (Index i = 0; i < n; ++i) ids.push_back(first + static_cast<std::int32_t>(2 * i));
              const auto out = b.allocate<float>(n, d);
              b.run(GatherRows<Buffer>{.source = all, .ids = b.adopt(std::move(ids), n), .out = out});
              return out;
            };
            const auto a = half(0), other = half(1), unit_a = b.allocate<float>(n, d), unit_b = b.allocate<float>(n, d);
            const auto best = b.allocate<std::int32_t>(n);
            const auto score = b.allocate<float>(n);
            const auto run = [=, &b] {
              b.run(NormalizeRows<Buffer>{.rows = a, .out = unit_a});
              b.run(NormalizeRows<Buffer>{.rows = other, .out = unit_b});
              b.run(BestMatch<Buffer>{.points = unit_a, .candidates = unit_b, .best = best, .score = score});
            };
            return Bound{run, reader(b, score)};
          }};
}

/// Soft matching in chunks: half of the tokens of a chunk are matched to its other half.
Case chunked_matching(Index chunk) {
  constexpr Index n = kTokens / 2;
  const auto pairs = static_cast<double>(n * chunk / 2);
  return {"best_match chunk=" + std::to_string(chunk),
          [=](Backend& b) {
            std::vector<std::int32_t> first, last;
            for (Index i = 0; i < n; ++i) first.push_back(static_cast<std::int32_t>(i / (chunk / 2) * (chunk / 2)));
            for (const std::int32_t begin : first) last.push_back(begin + static_cast<std::int32_t>(chunk / 2));
            const Buffer<float> tokens = clustered(b, kTokens, kDims);
            BestMatch<Buffer> op{.points = tokens.slice(0, n),
                                 .candidates = tokens.slice(n, n),
                                 .first = b.adopt(std::move(first), n),
                                 .last = b.adopt(std::move(last), n),
                                 .pairs = static_cast<Index>(pairs),
                                 .best = b.allocate<std::int32_t>(n),
                                 .score = b.allocate<float>(n)};
            return Bound{runner(b, op), reader(b, op.best, op.score)};
          },
          2 * kDims * pairs};
}

Case inner_products(std::string name, Index m, Index n, Index d) {
  return {std::move(name), [=](Backend& b) {
            InnerProducts<Buffer> op{.a = normal(b, m, d, 1), .b = normal(b, n, d, 2), .out = b.allocate<float>(m, n)};
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

/// Bounds of pages for queries whose positive and negative parts are multiplied by maxima and minima.
Case page_scores(Index queries, Index pages) {
  return {"inner_products page scores", [=](Backend& b) {
            const auto split = b.allocate<float>(queries, 2 * kDims);
            b.run(SplitSigns<Buffer>{.rows = normal(b, queries, kDims, 1), .out = split});
            InnerProducts<Buffer> op{
                .a = split, .b = normal(b, pages, 2 * kDims, 2), .out = b.allocate<float>(queries, pages)};
            return Bound{runner(b, op), reader(b, op.out)};
          }};
}

Case balance_walk(Index block, bool values) {
  return {"balance_walk b=" + std::to_string(block) + (values ? " values" : ""), [=](Backend& b) {
            const Index blocks = kTokens / block;
            std::vector<std::int32_t> starts;
            for (Index i = 0; i <= blocks; ++i) starts.push_back(static_cast<std::int32_t>(i * block));
            std::mt19937 engine(4);
            std::uniform_real_distribution<double> uniform;
            std::vector<double> uniforms(static_cast<std::size_t>(kTokens));
            for (double& u : uniforms) u = uniform(engine);
            const auto each = [&](float value) {
              auto buffer = b.allocate<float>(blocks);
              b.fill(buffer, value);
              return buffer;
            };
            BalanceWalk<Buffer> op{.keys = normal(b, kTokens, kDims, 1),
                                   .starts = b.adopt(std::move(starts), blocks + 1),
                                   .shift = each(12),
                                   .step = each(values ? 1e-3f : 0.1f),
                                   .scale = 1 / std::sqrt(static_cast<float>(kDims)),
                                   .uniforms = b.adopt(std::move(uniforms), kTokens),
                                   .signs = b.allocate<std::int32_t>(kTokens),
                                   .fails = b.allocate<std::int32_t>(blocks)};
            if (values) op.values = normal(b, kTokens, kDims, 3);
            return Bound{runner(b, op), reader(b, op.signs, op.fails)};
          }};
}

Case mean_rows(Index c) {
  return {"mean_rows c=" + std::to_string(c), [=](Backend& b) {
            std::mt19937 engine(5);
            std::uniform_int_distribution<std::int32_t> label(0, static_cast<std::int32_t>(c) - 1);
            std::vector<std::int32_t> labels(static_cast<std::size_t>(kTokens));
            for (auto& l : labels) l = label(engine);
            MeanRows<Buffer> op{.rows = normal(b, kTokens, kDims, 1),
                                .labels = b.adopt(std::move(labels), kTokens),
                                .out = b.allocate<float>(c, kDims),
                                .mass = b.allocate<float>(c)};
            return Bound{runner(b, op), reader(b, op.out, op.mass)};
          }};
}

template <template <template <class> class> class Op>
Case by_row(std::string name, Index out_rows, Index out_cols, Op<Buffer> op) {
  return {std::move(name), [=](Backend& b) {
            Op<Buffer> bound = op;
            bound.rows = normal(b, kTokens, kDims, 1);
            bound.out = b.allocate<float>(out_rows, out_cols);
            return Bound{runner(b, bound), reader(b, bound.out)};
          }};
}

}  // namespace

std::vector<Case> selection_cases() {
  constexpr Index pages = kTokens / 16;
  return {assignment(kTokens, kTokens / 80),
          assignment(kTokens / 4, 4096),
          lloyd_step(
              "k-means step c=" + std::to_string(kTokens / 80), [](Backend& b) { return clustered(b, kTokens, kDims); },
              kTokens / 80, true),
          chunked_matching(256),
          page_scores(256, pages),
          inner_products("inner_products 64 directions", kTokens, 64, kDims),
          inner_products("inner_products 4 queries", 4, kTokens, kDims),
          balance_walk(256, false),
          balance_walk(256, true),
          balance_walk(4096, false),
          by_row("normalize_rows", kTokens, kDims, NormalizeRows<Buffer>{}),
          mean_rows(kTokens / 80),
          by_row("page_bounds", pages, 2 * kDims, PageBounds<Buffer>{}),
          by_row("split_signs", kTokens, 2 * kDims, SplitSigns<Buffer>{})};
}

std::vector<Case> key_cases(const std::vector<float>& keys, Index columns) {
  const Index n = static_cast<Index>(keys.size()) / columns;
  const Rows rows = [=](Backend& b) { return b.adopt(std::vector(keys), n, columns); };
  return {lloyd_step("real keys, k-means step", rows, n / 80, false),
          whole_matching("real keys, soft matching of all", rows)};
}

}  // namespace kvbench::bench
