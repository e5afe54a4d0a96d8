// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/pass_summary.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvbench::kveval {
namespace {

constexpr double replay::Bytes::*byte_fields[] = {&replay::Bytes::kv,   &replay::Bytes::meta, &replay::Bytes::fast,
                                                  &replay::Bytes::slow, &replay::Bytes::read, &replay::Bytes::full};

/// Means over query heads and the last `scored` of the `queries` of all kv heads; rows to which a metric does not apply
/// (NaN) do not count.
replay::PerMetric<double> metric_means(const loop::LayerAnswer& answer, Index queries, Index scored) {
  replay::PerMetric<double> sums{}, counts{};
  for (const replay::ConfigurationResult& head : answer.heads) {
    for (Index i = 0; i < std::ssize(head.metrics); ++i) {
      if (i % queries < queries - scored) continue;
      const replay::MetricRow& row = head.metrics[static_cast<std::size_t>(i)];
      for (const replay::Metric k : replay::all_metrics()) {
        if (std::isnan(row[k])) continue;
        sums[k] += row[k];
        counts[k] += 1;
      }
    }
  }
  for (const replay::Metric k : replay::all_metrics()) sums[k] /= counts[k];
  return sums;
}

}  // namespace

void PassSummary::add(std::int64_t layer, const loop::LayerAnswer& answer, Index queries, Index scored) {
  answered_ += 1;
  kv_heads_ = static_cast<double>(answer.heads.size());
  for (const replay::ConfigurationResult& head : answer.heads) bytes_ += head.bytes;
  if (answer.heads.front().dense) return;
  for (const std::vector<Index>& held : answer.held) holders_.add(held);
  layers_.push_back({.layer = layer, .metrics = metric_means(answer, queries, scored)});
  for (const replay::ConfigurationResult& head : answer.heads) {
    heads_ += 1;
    budget_tokens_ += static_cast<double>(head.budget_tokens);
    kept_tokens_ += head.kept_tokens;
    merge_notes(notes_, head.notes);
  }
}

void PassSummary::skip(std::int64_t layer, const std::string& reason) {
  skipped_.push_back(layer);
  why_skipped_ = reason;
}

replay::Bytes PassSummary::mean_bytes(std::int64_t cached_layers) const {
  const double whole = static_cast<double>(cached_layers) - answered_;
  const double full = bytes_.full / answered_;  // of the heads of a layer, all of which have the same shapes
  replay::Bytes sum = bytes_;
  for (const auto field : {&replay::Bytes::kv, &replay::Bytes::fast, &replay::Bytes::read, &replay::Bytes::full})
    sum.*field += whole * full;
  for (const auto field : byte_fields) sum.*field /= static_cast<double>(cached_layers) * kv_heads_;
  return sum;
}

void PassSummary::finish(std::int64_t cached_layers, eval::PassResult& result) const {
  if (layers_.empty()) {
    result.status = replay::Status::skipped;
    result.reason =
        skipped_.empty() ? "no layer was compressed: the layers in which methods run are kept whole" : why_skipped_;
    return;
  }
  result.layers = layers_;
  result.budget_tokens = budget_tokens_ / heads_;
  result.kept_tokens = kept_tokens_ / heads_;
  result.bytes = mean_bytes(cached_layers);
  std::vector<std::string> parts;
  if (!skipped_.empty())
    parts.push_back(fmt::format("layer {} stays exact: {}", fmt::join(skipped_, ", "), why_skipped_));
  for (const methods::Note& note : notes_) parts.push_back(describe(note));
  result.reason = fmt::format("{}", fmt::join(parts, "; "));
}

double mean_drift(const std::vector<float>& hidden, const std::vector<float>& full, Index rows) {
  if (hidden.empty() || hidden.size() != full.size()) return NAN;
  const std::size_t width = hidden.size() / static_cast<std::size_t>(rows);
  double total = 0;
  for (std::size_t begin = 0; begin < hidden.size(); begin += width) {
    double difference = 0, size = 0;
    for (std::size_t i = begin; i < begin + width; ++i) {
      difference += std::pow(static_cast<double>(hidden[i]) - full[i], 2);
      size += std::pow(static_cast<double>(full[i]), 2);
    }
    total += std::sqrt(difference / size);
  }
  return total / static_cast<double>(rows);
}

}  // namespace kvbench::kveval
