// SPDX-License-Identifier: Apache-2.0
// What the codecs of a layer share in kvquant-nofisher: thresholds and codebooks from the calibration text, the ranges
// of the values of each token, and the outliers. Each is computed when it is first asked for: the search of a level
// needs outliers, but no codebook.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/quantisation/lloyd_max.hpp>
#include <kvbench/methods/quantisation/outliers.hpp>

namespace kvbench::methods {

/// The thresholds of the keys of a head before RoPE, by channel, and what follows from them. All are in f16.
struct KeyThresholds {
  std::vector<float> lower, upper;
  std::vector<float> scale, offset;  ///< which map the thresholds to -1 and 1
  bool outlying(std::size_t channel, float x) const { return x < lower[channel] || x > upper[channel]; }
};

class KvquantLayer {
 public:
  /// The heads are all kv heads of a layer. first: the first token is stored in 16 bits. Throws Unavailable where the
  /// heads are not all, where RoPE cannot be undone, and where there is no text to calibrate on.
  KvquantLayer(std::span<const HeadPrompt> heads, int bits, bool first, Backend& backend);

  int bits() const { return bits_; }
  /// Whether a token is stored in 16 bits.
  bool whole(std::int32_t token) const { return first_ && token == 0; }

  /// Keys [n, d] of these tokens turned back to what they are before RoPE, or, with sign = 1, turned forth again.
  Buffer<const float> turned(std::size_t head, const Buffer<const float>& keys, std::span<const std::int32_t> tokens,
                             int sign) const;

  const KeyThresholds& key_thresholds(std::size_t head);
  const Codebook& key_book();
  const Codebook& value_book();
  /// By token, those of the prompt and the appended ones.
  const std::vector<ValueRange>& value_ranges();

  /// Decoded tokens, the first of which is `first`. Tokens that are known are left out.
  void append_keys(std::size_t head, Index first, const Buffer<const float>& rows) {
    heads_[head].keys.append(first, rows);
  }
  void append_values(std::size_t head, Index first, const Buffer<const float>& rows) {
    heads_[head].values.append(first, rows);
  }

  /// Outliers of the head in these tokens, which are known. Those in 16 bits have none.
  Index outlying_keys(std::size_t head, std::span<const std::int32_t> tokens);
  Index outlying_values(std::size_t head, std::span<const std::int32_t> tokens);

 private:
  /// The rows of the prompt, and of the tokens appended to it.
  struct Rows {
    explicit Rows(const Buffer<const float>& prompt) : blocks{prompt}, tokens(prompt.rows()) {}
    void append(Index first, const Buffer<const float>& rows);

    std::vector<Buffer<const float>> blocks;  ///< [count, c]
    Index tokens;                             ///< of all blocks
  };
  struct Head {
    Rope rope;
    Rows keys, values;
    Buffer<const float> text_keys, text_values;                ///< of the calibration text
    std::optional<KeyThresholds> thresholds;                   ///< of the keys
    std::vector<std::int32_t> outlying_keys, outlying_values;  ///< by token, of the tokens counted so far
    std::size_t counted_keys = 0;                              ///< blocks of `keys`
  };

  std::vector<float> text_keys(std::size_t head) const;
  void count_keys(Head& head, const KeyThresholds& thresholds, std::size_t number);
  void measure_values(std::size_t block);

  Backend* backend_;
  int bits_;
  bool first_;
  std::vector<Head> heads_;
  std::optional<Codebook> key_book_, value_book_;
  std::vector<ValueRange> value_ranges_;
  std::size_t measured_values_ = 0;  ///< blocks of Head::values
};

}  // namespace kvbench::methods
