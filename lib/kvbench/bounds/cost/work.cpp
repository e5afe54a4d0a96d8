// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/cost/work.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/measure/bytes.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index stream_queries = 4;
constexpr double cluster_deviation =
    0.1;  // of a coordinate from that of its centre; coordinates of centres are about 1
constexpr double exponent_tolerance = 0.1;  // terms of lower order change a slope over these lengths by less

double stream_normal(std::uint32_t row, std::uint32_t col, std::uint32_t what) {
  return standard_normal(philox4x32({{row, col, what, 0}}, {11, 0xc057}));
}

std::vector<float> stream_rows(Index count, const CostShape& shape, std::uint32_t what, bool clustered) {
  const auto dim = static_cast<std::uint32_t>(shape.dim), centres = static_cast<std::uint32_t>(shape.centres);
  std::vector<float> out;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(count); ++i) {
    for (std::uint32_t c = 0; c < dim; ++c) {
      const double around = clustered ? stream_normal(i % centres, c, 9) + cluster_deviation * stream_normal(i, c, what)
                                      : stream_normal(i, c, what);
      out.push_back(static_cast<float>(around));
    }
  }
  return out;
}

methods::HeadPrompt head_of(Index n, const CostShape& shape, Backend& backend) {
  methods::HeadPrompt head{.scale = 0.25F};
  head.keys = cost_keys(n, backend, shape);
  head.values = backend.adopt(stream_rows(n, shape, 1, false), n, shape.dim);
  head.observed = backend.adopt(stream_rows(stream_queries, shape, 2, false), stream_queries, shape.dim);
  for (Index i = 0; i < stream_queries; ++i)
    head.observed_positions.push_back(static_cast<std::int32_t>(n - stream_queries + i));
  return head;
}

/// Queries after the context, which attend to all of it.
methods::QueryBlock queries_of(Index n, const CostShape& shape, Backend& backend) {
  methods::QueryBlock block{.queries =
                                backend.adopt(stream_rows(stream_queries, shape, 3, false), stream_queries, shape.dim)};
  for (Index i = 0; i < stream_queries; ++i) block.positions.push_back(static_cast<std::int32_t>(n + i));
  block.first = backend.adopt(std::vector<std::int32_t>(stream_queries, 0), stream_queries);
  block.last = backend.adopt(std::vector<std::int32_t>(stream_queries, static_cast<std::int32_t>(n)), stream_queries);
  return block;
}

/// Used slots per query.
double entries_per_query(const methods::EntryTables& tables, methods::Place place, Backend& backend) {
  double used = 0;
  for (const methods::EntryTable& table : tables) {
    if (table.place != place) continue;
    const std::vector<std::int32_t> ids = backend.read(table.ids);
    used += static_cast<double>(std::ranges::count_if(ids, [](std::int32_t id) { return id >= 0; })) /
            static_cast<double>(table.per_query ? stream_queries : 1);
  }
  return used;
}

}  // namespace

Buffer<const float> cost_keys(Index n, Backend& backend, const CostShape& shape) {
  return backend.adopt(stream_rows(n, shape, 0, true), n, shape.dim);
}

Work work_of(const CostCase& what, Index n, Backend& backend) {
  const methods::MethodInfo& info = methods::find_method(what.method);
  const methods::HeadPrompt head = head_of(n, what.shape, backend);
  const methods::QueryBlock block = queries_of(n, what.shape, backend);
  Work work;
  const double start = backend.cost().flops;
  Session session(info.prepare_head(head, info.bind(what.settings), backend)(what.budget(n), 0), n, backend);
  const double compressed = backend.cost().flops;
  const methods::EntryTables& tables = session.entries({block}).front();
  session.attend(0, {head.keys, head.values, head.scale, 1}, block, tables,
                 methods::empty_state(backend, stream_queries, what.shape.dim));
  work.compress_flops = compressed - start;
  work.query_flops = (backend.cost().flops - compressed) / static_cast<double>(stream_queries);
  const auto entries = [&](methods::Place place) { return entries_per_query(tables, place, backend); };
  const replay::Bytes bytes =
      replay::account(session.footprint().front(), methods::Element::f16, entries(methods::Place::retrieved), n,
                      what.shape.dim, what.shape.dim, entries(methods::Place::estimated));
  work.bytes = bytes.of(CostKind::memory);
  work.fast_bytes = bytes.fast;
  work.read_bytes = bytes.read;
  return work;
}

double growth(const std::vector<Index>& lengths, const std::vector<double>& y) {
  std::vector<double> x, log_y;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] <= 0) continue;
    x.push_back(std::log(static_cast<double>(lengths[i])));
    log_y.push_back(std::log(y[i]));
  }
  return x.size() < 2 ? 0 : slope(x, log_y);
}

void add_growth(CheckContext& context, const std::string& part, const CostCase& what, const StatedGrowth& of) {
  Statement statement{part, what.method};
  for (const methods::Assignment& a : what.settings) statement.params += fmt::format(";{}={}", a.name, a.value);
  const double measured = growth(of.sizes, of.values);
  context
      .cost(statement, measured, of.stated + exponent_tolerance,
            fmt::format("stated {}, exponent {:.2f}; fitted exponent {:.3f} over {} = {} to {}, where the value goes "
                        "from {:.4g} to {:.4g}",
                        of.complexity, of.stated, measured, of.variable, of.sizes.front(), of.sizes.back(),
                        of.values.front(), of.values.back()))
      .source = "synthetic:cost";
}

}  // namespace kvbench::bounds
