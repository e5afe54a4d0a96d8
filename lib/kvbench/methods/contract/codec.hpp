// SPDX-License-Identifier: Apache-2.0
// How the rows of one array, the keys or the values of a kv head, are stored in fewer bits. A quantiser is two codecs;
// stages/rounded_cache.hpp stores the entries of a cache through them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/methods/contract/footprint.hpp>

namespace kvbench::methods {

class Codec {
 public:
  virtual ~Codec() = default;

  /// How many rows are encoded, the first ones in the order of the cache, while queries attend to `held` rows, of which
  /// `context` came with the prompt and the others were decoded. The rest is stored in 16 bits. It does not decrease
  /// with `held`.
  virtual Index encoded(Index /*context*/, Index held) const { return held; }

  /// The rows that attention reads where these [n, c] were encoded. n is what encoded() returned, so that it ends where
  /// a group of rows ends.
  virtual Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const = 0;

  /// Whether each row is encoded for itself, so that decoded() of it alone has the same bits, whatever rows are beside
  /// it and whenever it is encoded.
  virtual bool by_row() const { return false; }

  /// The same for a codec that needs to know whose rows these are. tokens: their ids [n], which are their positions; -1
  /// for a row that is no token's own, such as a mean. Throws Unavailable where the codec cannot encode such a row.
  virtual Buffer<const float> decoded_at(const Buffer<const float>& rows, std::span<const std::int32_t> /*tokens*/,
                                         Backend& backend) const {
    return decoded(rows, backend);
  }

  /// Takes the rows [count, c] of decoded tokens, of which `first` is the first, before any of them is encoded. Those
  /// of the prompt were known when the codec was made. Caches that share the codec may each bring the same tokens.
  virtual void append(Index /*first*/, const Buffer<const float>& /*rows*/) const {}

  /// The arrays that hold `rows` encoded rows of `cols` numbers. Arrays of one row per encoded row may be read with
  /// their entries.
  virtual Footprint footprint(Index rows, Index cols) const = 0;

  /// The arrays beside these, once for all encoded rows, which are those of `tokens`: what a codec stores once, and
  /// what depends on the numbers.
  virtual Footprint extras(std::span<const std::int32_t> /*tokens*/) const { return {}; }
};

/// The codecs of a kv head. Null: the rows are stored in 16 bits.
struct Codecs {
  std::shared_ptr<const Codec> keys, values;
  std::shared_ptr<const Codec> queries;  ///< that read such keys, which are stored nowhere; null: they are exact
};

}  // namespace kvbench::methods
