// SPDX-License-Identifier: Apache-2.0
#include <kvbench/rounding/rounding.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/exact/exact_pass.hpp>
#include <kvbench/replay/exact/logit_check.hpp>

namespace kvbench::rounding {
namespace {

using trace::Array;

std::size_t to_size(Index i) { return static_cast<std::size_t>(i); }

std::vector<double> mean_of(std::span<const float> keys, Index d) {
  std::vector<double> mean(to_size(d), 0.0);
  for (std::size_t i = 0; i < keys.size(); ++i) mean[i % mean.size()] += double{keys[i]};
  for (double& x : mean) x *= static_cast<double>(d) / static_cast<double>(keys.size());
  return mean;
}

std::vector<float> without(std::span<const float> keys, const std::vector<double>& mean) {
  std::vector<float> out;
  out.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    out.push_back(static_cast<float>(double{keys[i]} - mean[i % mean.size()]));
  return out;
}

std::vector<Index> outliers_of(std::span<const float> keys, Index d) {
  std::vector<float> largest(to_size(d), 0);
  for (std::size_t i = 0; i < keys.size(); ++i)
    largest[i % largest.size()] = std::max(largest[i % largest.size()], std::abs(keys[i]));
  std::vector<float> sorted = largest;
  std::ranges::sort(sorted);
  const double median = (double{sorted[(sorted.size() - 1) / 2]} + double{sorted[sorted.size() / 2]}) / 2;
  std::vector<Index> outliers;
  for (Index c = 0; c < d; ++c) {
    if (double{largest[to_size(c)]} > outlier_factor * median) outliers.push_back(c);
  }
  return outliers;
}

/// One kv head in memory.
struct KeysAndQueries {
  Index n, d, group;
  std::vector<float> keys;     ///< [n, d]
  std::vector<float> queries;  ///< [G*m, d], row g*m + i
  const trace::LayerInfo& layer;

  Index per_head() const { return static_cast<Index>(layer.query_positions.size()); }
  /// The tokens first <= j < last that query i sees.
  std::pair<Index, Index> seen(Index i) const {
    const std::int64_t position = layer.query_positions[to_size(i)];
    return {replay::first_seen_by(position, layer.window), position + 1};
  }
  /// Queries that see at least two tokens, of all query heads together. Attention to a single one cannot move.
  Index movable() const {
    Index count = 0;
    for (Index i = 0; i < per_head(); ++i) count += seen(i).second - seen(i).first > 1;
    return group * count;
  }
};

KeysAndQueries read(const trace::Reader& reader, const replay::HeadPlace& place) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  KeysAndQueries head{prompt.num_tokens,
                      info.head_dim,
                      info.group(),
                      reader.read_head(prompt, layer, Array::keys, place.kv_head),
                      {},
                      layer};
  for (Index g = 0; g < head.group; ++g) {
    const std::vector<float> rows = reader.read_head(prompt, layer, Array::queries, place.kv_head * head.group + g);
    head.queries.insert(head.queries.end(), rows.begin(), rows.end());
  }
  replay::check_logits(reader, place, replay::largest_magnitude(head.keys), replay::largest_magnitude(head.queries));
  return head;
}

/// Softmax rows by keys, for blocks of queries.
class Attention {
 public:
  Attention(const KeysAndQueries& head, Backend& backend)
      : head_(head), backend_(backend), one_(backend.adopt(std::vector<float>(to_size(head.n), 0), head.n, 1)) {}

  /// Of the queries [begin, begin + count) of each query head: [G * count, n]. Rows of logits that are not finite are
  /// not, either.
  std::vector<double> shares(const Buffer<const float>& keys, Index begin, Index count) const {
    const Index rows = head_.group * count;
    std::vector<std::int32_t> first, last;
    for (Index i = begin; i < begin + count; ++i) {
      first.push_back(static_cast<std::int32_t>(head_.seen(i).first));
      last.push_back(static_cast<std::int32_t>(head_.seen(i).second));
    }
    Buffer<float> scores = backend_.allocate<float>(rows, head_.n);
    backend_.run(kernels::ExactAttention<Buffer>{
        .queries = backend_.adopt(replay::query_rows(head_.queries, head_.group, head_.per_head(), begin, count), rows,
                                  head_.d),
        .keys = keys,
        .values = one_,  // the kernel has no form without values
        .first = backend_.adopt(std::vector(first), count),
        .last = backend_.adopt(std::vector(last), count),
        .scale = static_cast<float>(head_.layer.scale),
        .out = backend_.allocate<float>(rows, 1),
        .max = backend_.allocate<float>(rows),
        .log_sum_exp = backend_.allocate<float>(rows),
        .scores = scores});
    const std::vector<float> logits = backend_.read(scores);
    std::vector<double> shares(logits.size(), 0.0);
    for (Index r = 0; r < rows; ++r) {
      const auto from = to_size(r * head_.n + first[to_size(r % count)]);
      const auto seen = to_size(last[to_size(r % count)] - first[to_size(r % count)]);
      softmax(std::span(logits).subspan(from, seen), std::span(shares).subspan(from, seen));
    }
    return shares;
  }

 private:
  void softmax(std::span<const float> logits, std::span<double> shares) const {
    const double cap = head_.layer.softcap;
    double most = -INFINITY, sum = 0;
    for (std::size_t j = 0; j < logits.size(); ++j) {
      shares[j] = cap > 0 ? cap * std::tanh(double{logits[j]} / cap) : double{logits[j]};
      most = std::max(most, shares[j]);
    }
    for (double& x : shares) sum += x = std::exp(x - most);
    for (double& x : shares) x /= sum;
  }

  const KeysAndQueries& head_;
  Backend& backend_;
  Buffer<const float> one_;
};

/// Sum over all queries of half of the sum of |p - p'|; not finite where a row of p' is not.
double moved_by(const KeysAndQueries& head, const Buffer<const float>& keys, const Buffer<const float>& rounded,
                Backend& backend) {
  const Attention attention(head, backend);
  const auto row_bytes = static_cast<double>(head.group * head.n) * sizeof(double);
  const Index block = std::clamp<Index>(static_cast<Index>(replay::score_bytes / row_bytes), 1, head.per_head());
  double sum = 0;
  for (Index begin = 0; begin < head.per_head(); begin += block) {
    const Index count = std::min(block, head.per_head() - begin);
    const std::vector<double> exact = attention.shares(keys, begin, count),
                              changed = attention.shares(rounded, begin, count);
    for (std::size_t i = 0; i < exact.size(); ++i) sum += std::abs(exact[i] - changed[i]) / 2;
  }
  return sum;
}

/// What codecs see of a head. They ask of the values how many channels they have, and whether they are those of keys.
methods::HeadPrompt prompt_of(const KeysAndQueries& head, const trace::TraceInfo& info, const Buffer<const float>& keys,
                              Backend& backend) {
  return {.group = head.group,
          .scale = static_cast<float>(head.layer.scale),
          .keys = keys,
          .values = backend.adopt(std::vector<float>(to_size(info.value_dim), 0), 1, info.value_dim),
          .values_in_keys = head.layer.values_in_keys};
}

double bits_of(const methods::Codec& codec, Index rows, Index cols) {
  double bytes = 0;
  for (const methods::FootprintArray& array : codec.footprint(rows, cols))
    bytes += static_cast<double>(array.rows * array.cols) * element_bytes(array.element, methods::Element::f16);
  return 8 * bytes / static_cast<double>(rows * cols);
}

bool finite(std::span<const float> rows) {
  return std::ranges::all_of(rows, [](float x) { return std::isfinite(x); });
}

class HeadMeasure {
 public:
  HeadMeasure(const KeysAndQueries& head, const trace::TraceInfo& info, Backend& backend)
      : head_(head), info_(info), backend_(backend) {}

  Rounded of(const KeyFormat& format) const {
    const bool centred = format.family == Family::centred;
    const Buffer<const float> keys = backend_.adopt(
        centred ? without(head_.keys, mean_of(head_.keys, head_.d)) : std::vector(head_.keys), head_.n, head_.d);
    const methods::MethodInfo& info = methods::find_method(format.method);
    try {
      const methods::Codecs codecs =
          info.quantiser.codecs(prompt_of(head_, info_, keys, backend_), info.bind(format.settings), 0, 0, backend_);
      const Index encoded = codecs.keys->encoded(head_.n, head_.n);
      if (encoded == 0) return {.reason = fmt::format("{} tokens are too few to fill a group", head_.n)};
      return rounded(keys, *codecs.keys, encoded);
    } catch (const methods::Unavailable& reason) {
      return {.reason = reason.what()};
    }
  }

 private:
  /// Rows behind the last full group stay as they are.
  Rounded rounded(const Buffer<const float>& keys, const methods::Codec& codec, Index encoded) const {
    Rounded result{.bits = bits_of(codec, encoded, head_.d)};
    if (head_.movable() == 0) return result.reason = "every recorded query sees one token", result;
    std::vector<float> rows = backend_.read(codec.decoded(keys.slice(0, encoded), backend_));
    if (!finite(rows)) return result.moved = 1, result;
    const std::vector<float> rest = backend_.read(keys.slice(encoded, head_.n - encoded));
    rows.insert(rows.end(), rest.begin(), rest.end());
    const double moved = moved_by(head_, keys, backend_.adopt(std::move(rows), head_.n, head_.d), backend_);
    result.moved = std::isfinite(moved) ? moved / static_cast<double>(head_.movable()) : 1;
    return result;
  }

  const KeysAndQueries& head_;
  const trace::TraceInfo& info_;
  Backend& backend_;
};

}  // namespace

std::string_view name_of(Family family) {
  static constexpr std::string_view names[] = {"by token", "by token, rotated", "by channel", "by token, centred"};
  return name_in(names, family);
}

std::string KeyFormat::name() const {
  std::string text;
  for (const methods::Assignment& setting : settings)
    text += fmt::format("{}{}={}", text.empty() ? "[" : ",", setting.name, setting.value);
  return method + text + (text.empty() ? "" : "]");
}

std::span<const KeyFormat> key_formats() {
  static const std::array formats = {
      KeyFormat{Family::by_token, "q8_0"},
      KeyFormat{Family::by_token, "q5_1"},
      KeyFormat{Family::by_token, "q4_0"},
      KeyFormat{Family::rotated, "q8_0", {{"hadamard", "true"}}},
      KeyFormat{Family::rotated, "q5_1", {{"hadamard", "true"}}},
      KeyFormat{Family::rotated, "q4_0", {{"hadamard", "true"}}},
      KeyFormat{Family::by_channel, "kivi4", {{"residual", "32"}}},  // as few waiting tokens as a group allows
      KeyFormat{Family::by_channel, "kivi2", {{"residual", "32"}}},
      KeyFormat{Family::centred, "q4_0"},
  };
  return formats;
}

KeyShape shape_of(std::span<const float> keys, Index d) {
  const std::vector<double> mean = mean_of(keys, d);
  KeyShape shape{.outliers = outliers_of(keys, d)};
  double length = 0, rest = 0;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    length += mean[c] * mean[c];
    if (std::abs(mean[c]) > std::abs(mean[to_size(shape.channel)])) shape.channel = static_cast<Index>(c);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double difference = double{keys[i]} - mean[i % mean.size()];
    rest += difference * difference;
  }
  rest *= static_cast<double>(d) / static_cast<double>(keys.size());
  shape.mean = mean[to_size(shape.channel)];
  shape.constant = length == 0 ? 0 : std::sqrt(length / rest);
  return shape;
}

double HeadRounding::needed_bits(Family family) const {
  double needed = INFINITY;
  for (std::size_t f = 0; f < formats.size(); ++f) {
    if (key_formats()[f].family != family) continue;
    if (std::isnan(formats[f].moved)) return NAN;
    if (formats[f].moved > most_moved) break;
    needed = formats[f].bits;
  }
  return needed;
}

const Rounded& HeadRounding::of(Family family, std::string_view method) const {
  for (std::size_t f = 0; f < formats.size(); ++f) {
    if (key_formats()[f].family == family && key_formats()[f].method == method) return formats[f];
  }
  throw std::logic_error("no such format of keys");
}

double HeadRounding::most_by_token() const {
  double most = 0;
  for (std::size_t f = 0; f < formats.size(); ++f) {
    if (key_formats()[f].family != Family::by_token) continue;
    if (std::isnan(formats[f].moved)) return NAN;
    most = std::max(most, formats[f].moved);
  }
  return most;
}

HeadRounding measure_head(const trace::Reader& reader, const replay::HeadPlace& place, Backend& backend,
                          const std::atomic<bool>* stop) {
  const trace::PromptInfo& prompt = reader.info().prompts[place.prompt];
  const KeysAndQueries head = read(reader, place);
  HeadRounding result{.prompt = prompt.id,
                      .name = prompt.name,
                      .layer = head.layer.layer,
                      .kv_head = place.kv_head,
                      .queries = head.movable(),
                      .keys = shape_of(head.keys, head.d)};
  const HeadMeasure measure(head, reader.info(), backend);
  for (const KeyFormat& format : key_formats()) {
    if (stop != nullptr && stop->load()) throw Interrupted();
    result.formats.push_back(measure.of(format));
  }
  return result;
}

std::vector<HeadRounding> worst_first(std::vector<HeadRounding> heads) {
  const auto key = [](const HeadRounding& head) {
    const double moved = head.most_by_token();
    return std::isnan(moved) ? 1.0 : -moved;
  };
  std::ranges::stable_sort(heads, {}, key);
  return heads;
}

}  // namespace kvbench::rounding
