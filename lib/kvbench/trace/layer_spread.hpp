// SPDX-License-Identifier: Apache-2.0
// Whether the recorded layers of a trace can speak for the whole model.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kvbench::trace {

/// all: every layer of the model. evenly_spaced: at least `fewest_layers`, one in each equal part of the model's depth
/// (with n layers, one in each n-th). few: less than `fewest_layers`. clustered: enough layers, but a part of the depth
/// has none.
enum class LayerSpread { all, evenly_spaced, few, clustered };
/// Of fewer layers, a single unusual one is too large a part of every mean.
constexpr std::int64_t fewest_layers = 5;

/// `layers`: increasing numbers below `of`, the number of layers of the model.
LayerSpread spread_of(std::span<const std::int64_t> layers, std::int64_t of);

/// "2, 5, 8, ..., 29 (10 of 30, evenly spaced): ...", with what conclusions over these layers hold for.
std::string describe_spread(std::span<const std::int64_t> layers, std::int64_t of);

}  // namespace kvbench::trace
