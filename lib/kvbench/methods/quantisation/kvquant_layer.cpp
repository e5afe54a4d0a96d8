// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/kvquant_layer.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/methods/quantisation/lloyd_max.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

void check_rope(const HeadPrompt& head) {
  if (head.rope && head.keys.cols() % 2 == 0) return;
  throw Unavailable(
      "kvquant-nofisher stores keys as they are before RoPE, and there is no unscaled RoPE over an even head "
      "dimension that could be undone");
}

const HeadPrompt& text_of(const HeadPrompt& head) { return head.calibration ? *head.calibration : head; }

void check_heads(std::span<const HeadPrompt> heads) {
  if (std::ssize(heads) < heads.front().num_kv_heads) {
    throw Unavailable(
        fmt::format("kvquant-nofisher rounds the values of all {} kv heads of a layer together, and has {} of them",
                    heads.front().num_kv_heads, heads.size()));
  }
  for (const HeadPrompt& head : heads) {
    check_rope(head);
    check_rope(text_of(head));
    if (text_of(head).tokens() == 0)
      throw Unavailable("kvquant-nofisher calibrates on a text, and the context is empty; name one with --calibrate");
  }
}

/// The numbers of token i in the rows of all heads.
void collect_token(const std::vector<HostView<float>>& rows, std::size_t cols, std::size_t i,
                   std::vector<float>& numbers) {
  numbers.clear();
  for (const HostView<float>& of_head : rows)
    numbers.insert(numbers.end(), of_head.begin() + i * cols, of_head.begin() + (i + 1) * cols);
}

KeyThresholds thresholds_of(const std::vector<float>& rows, std::size_t cols) {
  KeyThresholds out;
  std::vector<float> numbers(rows.size() / cols);
  for (std::size_t c = 0; c < cols; ++c) {
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = rows[i * cols + c];
    const OutlierBounds bounds = outlier_bounds(numbers);
    const float lower = in_f16(static_cast<float>(bounds.lower)), upper = in_f16(static_cast<float>(bounds.upper));
    out.lower.push_back(lower), out.upper.push_back(upper);
    out.scale.push_back(in_f16(in_f16(upper - lower) / 2));
    out.offset.push_back(in_f16(in_f16(upper + lower) / 2));
  }
  return out;
}

/// Adds (x - offset) / scale to what the codebook is fitted to, but for outliers, which are beyond -1 and 1.
void add_point(std::vector<float>& points, double x, double offset, double scale) {
  const double y = (x - offset) / scale;
  if (y >= -1 && y <= 1) points.push_back(static_cast<float>(y));
}

}  // namespace

KvquantLayer::KvquantLayer(std::span<const HeadPrompt> heads, int bits, bool first, Backend& backend)
    : backend_(&backend), bits_(bits), first_(first) {
  check_heads(heads);
  for (const HeadPrompt& head : heads) {
    const HeadPrompt& text = text_of(head);
    heads_.push_back({.rope = *head.rope,
                      .keys = Rows(head.keys),
                      .values = Rows(head.values),
                      .text_keys = text.keys,
                      .text_values = text.values});
  }
}

void KvquantLayer::Rows::append(Index first, const Buffer<const float>& rows) {
  const Index known = tokens - first;
  if (known >= rows.rows()) return;
  blocks.push_back(rows.slice(known, rows.rows() - known));
  tokens = first + rows.rows();
}

Buffer<const float> KvquantLayer::turned(std::size_t head, const Buffer<const float>& keys,
                                         std::span<const std::int32_t> tokens, int sign) const {
  std::vector<std::int64_t> offsets;
  for (const std::int32_t token : tokens) offsets.push_back(sign * token);
  const auto out = backend_->allocate<float>(keys.rows(), keys.cols());
  backend_->run(kernels::RotateRows<Buffer>{.rows = keys,
                                            .offsets = backend_->adopt(std::move(offsets), keys.rows()),
                                            .theta = heads_[head].rope.theta,
                                            .rotary_dims = keys.cols(),
                                            .interleaved = heads_[head].rope.interleaved,
                                            .out = out});
  return out;
}

/// The keys of the calibration text before RoPE.
std::vector<float> KvquantLayer::text_keys(std::size_t head) const {
  const Buffer<const float>& keys = heads_[head].text_keys;
  return backend_->read(turned(head, keys, token_range(0, keys.rows()), -1));
}

const KeyThresholds& KvquantLayer::key_thresholds(std::size_t head) {
  Head& of = heads_[head];
  if (!of.thresholds) of.thresholds = thresholds_of(text_keys(head), static_cast<std::size_t>(of.text_keys.cols()));
  return *of.thresholds;
}

const Codebook& KvquantLayer::key_book() {
  if (key_book_) return *key_book_;
  std::vector<float> points;
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const KeyThresholds& thresholds = key_thresholds(h);
    const std::vector<float> keys = text_keys(h);
    const std::size_t d = thresholds.lower.size();
    for (std::size_t i = first_ ? d : 0; i < keys.size(); ++i) {
      const std::size_t c = i % d;
      add_point(points, keys[i], thresholds.offset[c], thresholds.scale[c]);
    }
  }
  return key_book_.emplace(fitted_codebook(std::move(points), bits_));
}

const Codebook& KvquantLayer::value_book() {
  if (value_book_) return *value_book_;
  std::vector<HostView<float>> rows;
  for (const Head& head : heads_) rows.push_back(backend_->on_host(head.text_values));
  const auto tokens = static_cast<std::size_t>(heads_.front().text_values.rows()),
             dv = static_cast<std::size_t>(heads_.front().text_values.cols());
  std::vector<float> points, numbers;
  for (std::size_t i = first_ ? 1 : 0; i < tokens; ++i) {
    collect_token(rows, dv, i, numbers);
    const OutlierBounds bounds = outlier_bounds(numbers);
    const double offset = (bounds.upper + bounds.lower) / 2, scale = (bounds.upper - bounds.lower) / 2;
    for (const float x : numbers) add_point(points, x, offset, scale);
  }
  return value_book_.emplace(fitted_codebook(std::move(points), bits_));
}

/// Ranges and outliers of the values of one block of tokens, which all heads know.
void KvquantLayer::measure_values(std::size_t block) {
  std::vector<HostView<float>> rows;
  for (const Head& head : heads_) rows.push_back(backend_->on_host(head.values.blocks[block]));
  const auto tokens = static_cast<std::size_t>(heads_.front().values.blocks[block].rows()),
             dv = static_cast<std::size_t>(heads_.front().values.blocks[block].cols());
  std::vector<float> numbers;
  for (std::size_t i = 0; i < tokens; ++i) {
    collect_token(rows, dv, i, numbers);
    const bool exact = whole(static_cast<std::int32_t>(value_ranges_.size()));
    const ValueRange range = value_ranges_.emplace_back(range_of_token(numbers));
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const float* row = rows[h].data() + i * dv;
      const auto count = std::count_if(row, row + dv, [&](float x) { return range.outlying(x); });
      heads_[h].outlying_values.push_back(exact ? 0 : static_cast<std::int32_t>(count));
    }
  }
}

const std::vector<ValueRange>& KvquantLayer::value_ranges() {
  std::size_t known = heads_.front().values.blocks.size();
  for (const Head& head : heads_) known = std::min(known, head.values.blocks.size());
  for (; measured_values_ < known; ++measured_values_) measure_values(measured_values_);
  return value_ranges_;
}

/// Counts the outliers of the keys appended since the last call.
void KvquantLayer::count_keys(Head& head, const KeyThresholds& thresholds, std::size_t number) {
  for (; head.counted_keys < head.keys.blocks.size(); ++head.counted_keys) {
    const Buffer<const float>& block = head.keys.blocks[head.counted_keys];
    const std::vector<TokenId> tokens = token_range(std::ssize(head.outlying_keys), block.rows());
    const std::vector<float> rows = backend_->read(turned(number, block, tokens, -1));
    const std::size_t d = thresholds.lower.size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::int32_t count = 0;
      for (std::size_t c = 0; c < d && !whole(tokens[i]); ++c) count += thresholds.outlying(c, rows[i * d + c]) ? 1 : 0;
      head.outlying_keys.push_back(count);
    }
  }
}

Index KvquantLayer::outlying_keys(std::size_t head, std::span<const std::int32_t> tokens) {
  count_keys(heads_[head], key_thresholds(head), head);
  Index count = 0;
  for (const std::int32_t token : tokens) count += heads_[head].outlying_keys[static_cast<std::size_t>(token)];
  return count;
}

Index KvquantLayer::outlying_values(std::size_t head, std::span<const std::int32_t> tokens) {
  value_ranges();
  Index count = 0;
  for (const std::int32_t token : tokens) count += heads_[head].outlying_values[static_cast<std::size_t>(token)];
  return count;
}

}  // namespace kvbench::methods
