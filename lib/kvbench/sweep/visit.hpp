// SPDX-License-Identifier: Apache-2.0
// What a file of cells stores: each struct lists its members once, for every archive (store/archive.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <kvbench/replay/records/figures.hpp>
#include <kvbench/store/check_values.hpp>
#include <kvbench/sweep/layout.hpp>

namespace kvbench::store {

// visit() is found by argument-dependent lookup in the namespace of the archive, hence not in an unnamed namespace.

/// A text that is no budget is read as none, which check_cells() refuses.
template <class A>
void visit(A& archive, Budget& v) {
  std::string text = v.text();
  archive(text);
  if constexpr (A::reads) v = Budget::find(text).value_or(Budget());
}

template <class A>
void visit(A& archive, replay::Configuration& v) {
  archive(v.method, v.budget, v.seed);
}

template <class A>
void visit(A& archive, trace::Anchor& v) {
  std::int64_t layer = v.layer.value_or(-1);
  archive(v.method, v.budget, layer, v.kl, v.predicted);
  if constexpr (A::reads) v.layer = layer < 0 ? std::nullopt : std::optional(layer);
}

template <class A>
void visit(A& archive, trace::Span& v) {
  archive(v.name, v.begin, v.end);
}

template <class A>
void visit(A& archive, replay::ReplayFrame::Prompt& v) {
  archive(v.id, v.protocol, v.context_tokens, v.scored_tokens, v.anchors, v.anchored, v.name, v.spans);
}

template <class A>
void visit(A& archive, replay::ReplayFrame::Method& v) {
  archive(v.name, v.params, v.seeded);
}

template <class A>
void visit(A& archive, replay::ReplayFrame& v) {
  archive(v.trace, v.sha256, v.model, v.rope_layout, v.model_layers, v.group, v.prompts, v.methods, v.budgets,
          v.configurations, v.device, v.isa, v.standalone, v.rank_by);
}

template <class A>
void visit(A& archive, methods::Note& v) {
  archive(v.text, v.count);
}

/// The metrics that have a value for some query, and the first one, stored column by column: half of the metrics do not
/// apply to most methods. The first one makes every row take some bytes, so that no number of rows is larger than the
/// file.
struct MetricColumns {
  std::uint64_t rows = 0;
  std::uint32_t present = 0;
  std::vector<float> values;
};
static_assert(replay::Metric::most <= 32);

template <class A>
void visit(A& archive, MetricColumns& v) {
  archive(v.rows, v.present, v.values);
}

inline MetricColumns to_columns(const std::vector<replay::MetricRow>& rows) {
  MetricColumns columns{.rows = rows.size()};
  for (const replay::Metric m : replay::all_metrics()) {
    const bool absent = std::ranges::all_of(rows, [&](const replay::MetricRow& row) { return std::isnan(row[m]); });
    if (absent && (m.row() > 0 || rows.empty())) continue;
    columns.present |= std::uint32_t{1} << m.row();
    for (const replay::MetricRow& row : rows) columns.values.push_back(row[m]);
  }
  return columns;
}

inline std::vector<replay::MetricRow> to_rows(const MetricColumns& columns) {
  const auto present = static_cast<std::size_t>(std::popcount(columns.present));
  const bool fits = present == 0
                        ? columns.values.empty() && columns.rows == 0
                        : columns.values.size() % present == 0 && columns.values.size() / present == columns.rows;
  if (!fits || std::uint64_t{columns.present} >> replay::all_metrics().size() != 0)
    throw std::out_of_range("the number of stored metrics is wrong");
  replay::MetricRow none;
  none.fill(std::numeric_limits<float>::quiet_NaN());
  std::vector<replay::MetricRow> rows(columns.rows, none);
  const float* value = columns.values.data();
  for (const replay::Metric m : replay::all_metrics()) {
    if ((columns.present >> m.row() & 1) == 0) continue;
    for (replay::MetricRow& row : rows) row[m] = *value++;
  }
  return rows;
}

template <class A>
void visit(A& archive, replay::ConfigurationResult& v) {
  archive(v.status, v.reason, v.notes, v.dense, v.budget_tokens, v.kept_tokens, v.bytes, v.peak_bytes, v.compress_flops,
          v.attend_flops, v.compress_s, v.attend_s, v.exact_s, v.rel_err_fro, v.probe_sums, v.residual, v.held);
  MetricColumns columns;
  if constexpr (!A::reads) columns = to_columns(v.metrics);
  archive(columns);
  if constexpr (A::reads) v.metrics = to_rows(columns);
}

template <class A>
void visit(A& archive, replay::HeadResult& v) {
  archive(v.place.prompt, v.place.layer, v.place.kv_head, v.layer, v.positions, v.windowed);
}

template <class A>
void visit(A& archive, measures::MeasureRow& v) {
  archive(v.trace, v.sha256, v.model, v.prompt, v.layer, v.kv_head, v.measure, v.array, v.x, v.value, v.count);
}

template <class A>
void visit(A& archive, sweep::CellEntry& v) {
  archive(v.key, v.method, v.heads);
}

template <class A>
void visit(A& archive, sweep::StepLayout& v) {
  archive(v.run, v.frame, v.heads, v.cells, v.measured, v.measures);
}

template <class A>
void visit(A& archive, compare::Relation& v) {
  archive(v.kind, v.run, v.a, v.b, v.number, v.within, v.by, v.tokens, v.below);
}

/// A name that is no metric is read as none, which check_cells() refuses.
template <class A>
void visit(A& archive, compare::PaperClaim& v) {
  std::string metric(v.metric.name);
  archive(v.id, v.text, metric, v.relations, v.untestable);
  if constexpr (A::reads) v.metric = compare::find_query_metric(metric).value_or(replay::MetricInfo{});
}

template <class A>
void visit(A& archive, sweep::SweepLayout& v) {
  archive(v.name, v.version, v.commit, v.steps, v.claims);
}

}  // namespace kvbench::store
