// SPDX-License-Identifier: Apache-2.0
// The context of a cache that is compressed again: the tokens that it held before, as a document of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kvbench/loop/layer_arrays.hpp>

#include <apps/llama/layer_capture.hpp>

namespace kvbench::kveval {

/// Arrays of a layer in the order of the held tokens.
struct HeldArrays {
  std::vector<float> keys, values, queries;
  std::vector<double> column_sums;
};

/// Positions in the conversation, by layer (index) and kv head. All heads hold equally many tokens, `end` is the number
/// of tokens that have been seen.
class HeldContext {
 public:
  /// All tokens. `sums`: the attention mass of tokens is kept; `captured`: the layers, with column sums up to `end`.
  HeldContext(const std::vector<const llama::LayerCapture*>& captured, Index end, bool sums);

  Index end() const { return end_; }
  Index size() const { return size_; }
  /// How many of the last tokens all heads of all layers hold, and at most `most`: their queries are observed.
  Index observed(Index most) const;

  /// A layer's arrays of the held tokens and the next `count`, with the queries of the last `observed` ones and these.
  HeldArrays arrays(std::size_t layer, const llama::LayerCapture& captured, Index observed, Index count) const;

  /// Adds to the mass of each token that of the next `count` queries, in the softmax over the keys of the tokens up
  /// to the query: of the earlier ones those that are still held, as keep() says, or all held ones without it.
  void add_attention(const std::vector<const llama::LayerCapture*>& captured, Index count, std::size_t threads);

  using Positions = std::vector<std::vector<Index>>;  ///< by kv head
  /// From the numbers of arrays() to positions in the conversation.
  void number(std::size_t layer, Positions& held) const;
  /// What the heads of a layer hold after `count` more tokens. Layers of which this is not called take no part, and
  /// stand for no other.
  void keep(std::size_t layer, const Positions& held) { next_[layer] = held; }
  /// Ends the part. Returns why the tokens cannot be compressed again, or "".
  std::string advance(Index count);
  /// All tokens up to `end` are held, with the mass that they have.
  void hold_all(Index end);

 private:
  std::vector<Positions> layers_, next_;  ///< next_: empty for a layer that takes no part
  Index end_ = 0, size_ = 0;
  std::vector<std::vector<double>> sums_;  ///< by layer [query_heads, tokens of the conversation]; empty: not kept
};

}  // namespace kvbench::kveval
