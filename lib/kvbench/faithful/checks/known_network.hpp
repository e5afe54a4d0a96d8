// SPDX-License-Identifier: Apache-2.0
// A text whose attention outputs z move the predictions of a known network, with probes as a trace records them, and
// its replay. Layers do not feed each other: after a change dz the logits of scored token t are ln p_t + sum over
// layers and query heads of W dz_t, so that the gradients of the probes are exact. Each layer adds z to a residual
// stream as it is: its W_O is 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kvbench/replay/records/results.hpp>

namespace kvbench::faithful {

struct NetworkOptions {
  float key_bias = 0;                                ///< added to channel 0 of all keys of layer 0
  double weight = 1;                                 ///< standard deviation of W
  std::vector<Index> drawn{0, 0, 0, 0, 1, 1, 2, 3};  ///< words, each as often as p says
};

/// Every array is row-major; heads are numbered layer by layer.
struct KnownNetwork {
  static constexpr Index layers = 2, kv_heads = 2, group = 2, heads = kv_heads * group, d = 4, dv = 3;
  static constexpr Index context = 24;              ///< tokens that methods compress
  static constexpr Index unscored = 2, scored = 5;  ///< tokens after it, all of which have queries
  static constexpr Index queries = unscored + scored, tokens = context + queries;
  static constexpr Index words = 4;
  static constexpr float scale = 0.5F;   ///< of logits of the attention
  static constexpr float stream = 0.5F;  ///< norm of the residual stream before each layer

  Index probes;                     ///< 8 * NetworkOptions::drawn.size()
  std::vector<float> keys, values;  ///< [layers * kv_heads, tokens, d] and [.., dv]
  std::vector<float> asked;         ///< [layers * heads, queries, d]
  std::vector<double> weights;      ///< W, [layers * heads, words, dv]
  std::vector<double> p;            ///< [scored, words]
  std::vector<Index> labels;        ///< [probes, scored] the word y_t of a probe
  std::vector<double> signs;        ///< [probes, scored] s_t

  /// Normal numbers by the seed. The labels of a probe depend on each other, as those of one random number for all
  /// tokens would: only the signs make the products of two tokens vanish. Over all probes each word of a token is a
  /// label as often as p says, with each sign, and the signs of two tokens are orthogonal, so that the mean over the
  /// probes is that over random labels and signs.
  explicit KnownNetwork(std::uint32_t seed, const NetworkOptions& options = {});

  /// What d logits / d z of a head has for a word, [dv].
  std::span<const double> weights_of(Index head, Index word) const {
    return std::span(weights).subspan(static_cast<std::size_t>((head * words + word) * dv), dv);
  }
};

/// A network that is sure of its predictions, p = (509, 1, 1, 1) / 512, whose layers move them far. A bias of the keys
/// changes no exact output, since it adds one number to all logits of a query.
KnownNetwork confident_network(std::uint32_t seed, float key_bias);

/// Replays `sink`, and `uniform` with two seeds, at a quarter of the context, with raw outputs.
replay::ReplayResults replay_network(const KnownNetwork& network, Backend& backend);
/// The same of one method that may hold all of the memory.
replay::ReplayResults replay_network(const KnownNetwork& network, const replay::MethodChoice& method, Backend& backend);

}  // namespace kvbench::faithful
