// SPDX-License-Identifier: Apache-2.0
// Rows of a subject as a quantiser of the registry stores them, for the checks of what quantisers guarantee.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/methods/contract/params.hpp>

namespace kvbench::faithful {

enum class Side { keys, values };

/// A quantiser at its first level with these settings.
struct QuantiserSetting {
  std::string method;
  std::vector<methods::Assignment> settings;
};

/// The rows [n, d], or [n, dv] of values, encoded and decoded with the draws of a seed. Throws methods::Unavailable
/// where the quantiser refuses their shape.
std::vector<float> decoded_rows(const bounds::Subject& subject, const QuantiserSetting& setting, Side side,
                                const std::vector<float>& rows, std::uint32_t seed, Backend& backend);

/// Keys [n, d] as decoded with the draws of a seed: what the checks are given.
using KeyDecoder = std::function<std::vector<float>(const std::vector<float>& keys, std::uint32_t seed)>;

/// The decoder of the keys of a subject. The subject and the back end must outlive it.
KeyDecoder key_decoder(const bounds::Subject& subject, QuantiserSetting setting, Backend& backend);

/// At most `count` keys, evenly spaced, of lengths that f16 stores as normal numbers. Throws methods::Unavailable where
/// there is none, or where keys have one channel.
std::vector<float> ordinary_keys(const bounds::Subject& subject, Index count);

/// Row i of [n, d].
inline std::span<const float> row_of(const std::vector<float>& rows, Index d, Index i) {
  return {rows.data() + i * d, static_cast<std::size_t>(d)};
}

}  // namespace kvbench::faithful
