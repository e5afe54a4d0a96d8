// SPDX-License-Identifier: Apache-2.0
#include <apps/kveval/held_context.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <kvbench/core/parallel_for.hpp>

namespace kvbench::kveval {
namespace {

std::vector<Index> tokens_from(Index begin, Index end) {
  std::vector<Index> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

/// Appends the rows at these positions of a head's [rows, width], and the `count` rows from `begin` on.
template <class T>
void add_rows(const T* head, Index width, const std::vector<Index>& positions, Index begin, Index count,
              std::vector<T>& out) {
  for (const Index p : positions) out.insert(out.end(), head + p * width, head + (p + 1) * width);
  out.insert(out.end(), head + begin * width, head + (begin + count) * width);
}

double dot(const float* a, const float* b, Index size) {
  constexpr Index lanes = 8;  // sums that the compiler computes at once
  double sums[lanes] = {};
  for (Index i = 0; i < size; ++i) sums[i % lanes] += static_cast<double>(a[i]) * b[i];
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

}  // namespace

HeldContext::HeldContext(const std::vector<const llama::LayerCapture*>& captured, Index end, bool sums)
    : layers_(captured.size()), next_(captured.size()), end_(end), size_(end) {
  for (std::size_t l = 0; l < captured.size(); ++l) {
    layers_[l].assign(static_cast<std::size_t>(captured[l]->kv_heads), tokens_from(0, end));
    if (sums) sums_.push_back(captured[l]->column_sums);
  }
}

Index HeldContext::observed(Index most) const {
  Index count = std::min(most, size_);
  for (const Positions& heads : layers_) {
    for (const std::vector<Index>& held : heads) {
      while (count > 0 && held[static_cast<std::size_t>(size_ - count)] != end_ - count) --count;
    }
  }
  return count;
}

HeldArrays HeldContext::arrays(std::size_t layer, const llama::LayerCapture& captured, Index observed,
                               Index count) const {
  HeldArrays out;
  const Index d = captured.head_dim, dv = captured.value_dim, tokens = captured.num_tokens;
  for (Index h = 0; h < captured.kv_heads; ++h) {
    const std::vector<Index>& held = layers_[layer][static_cast<std::size_t>(h)];
    add_rows(captured.keys.data() + h * tokens * d, d, held, end_, count, out.keys);
    add_rows(captured.values.data() + h * tokens * dv, dv, held, end_, count, out.values);
  }
  const Index stored = std::ssize(captured.query_positions), first = end_ - observed - captured.query_positions.front();
  for (Index h = 0; h < captured.query_heads; ++h) {
    const float* const head = captured.queries.data() + h * stored * d;
    out.queries.insert(out.queries.end(), head + first * d, head + (first + observed + count) * d);
    if (sums_.empty()) continue;
    const Index kv_head = h / (captured.query_heads / captured.kv_heads);
    add_rows(sums_[layer].data() + h * tokens, 1, layers_[layer][static_cast<std::size_t>(kv_head)], end_, count,
             out.column_sums);
  }
  return out;
}

void HeldContext::add_attention(const std::vector<const llama::LayerCapture*>& captured, Index count,
                                std::size_t threads) {
  if (sums_.empty()) return;
  const auto heads = static_cast<std::size_t>(captured.front()->query_heads);
  parallel_for(captured.size() * heads, threads, [&](std::size_t i, std::size_t) {
    const std::size_t layer = i / heads, h = i % heads;
    const llama::LayerCapture& of = *captured[layer];
    const auto group = static_cast<std::size_t>(of.query_heads / of.kv_heads);
    std::vector<Index> tokens = (next_[layer].empty() ? layers_ : next_)[layer][h / group];
    std::erase_if(tokens, [&](Index token) { return token >= end_; });
    const Index stored = std::ssize(of.query_positions);
    const float* const keys = of.keys.data() + static_cast<Index>(h / group) * of.num_tokens * of.head_dim;
    double* const sums = sums_[layer].data() + static_cast<Index>(h) * of.num_tokens;
    for (Index p = end_; p < end_ + count; ++p) {
      tokens.push_back(p);
      const Index row = static_cast<Index>(h) * stored + p - of.query_positions.front();
      std::vector<double> weights;
      for (const Index token : tokens)
        weights.push_back(of.parameters.scale *
                          dot(of.queries.data() + row * of.head_dim, keys + token * of.head_dim, of.head_dim));
      const double most = std::ranges::max(weights);
      double total = 0;
      for (double& weight : weights) total += weight = std::exp(weight - most);
      for (std::size_t t = 0; t < tokens.size(); ++t) sums[tokens[t]] += weights[t] / total;
    }
  });
}

void HeldContext::number(std::size_t layer, Positions& held) const {
  for (std::size_t h = 0; h < held.size(); ++h)
    for (Index& token : held[h])
      token = token < size_ ? layers_[layer][h][static_cast<std::size_t>(token)] : end_ + token - size_;
}

std::string HeldContext::advance(Index count) {
  Index size = -1;
  for (const Positions& heads : next_) {
    for (const std::vector<Index>& held : heads) {
      if (size < 0) size = std::ssize(held);
      if (std::ssize(held) != size)
        return "its heads hold different numbers of tokens, and a method is given equally many of all heads";
    }
  }
  end_ += count;
  size_ = size < 0 ? end_ : size;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (next_[l].empty())  // its arrays have the right shapes, and are not used
      layers_[l].assign(layers_[l].size(), tokens_from(end_ - size_, end_));
    else
      layers_[l] = std::move(next_[l]);
    next_[l].clear();
  }
  return "";
}

void HeldContext::hold_all(Index end) {
  end_ = size_ = end;
  for (Positions& heads : layers_) heads.assign(heads.size(), tokens_from(0, end));
}

}  // namespace kvbench::kveval
