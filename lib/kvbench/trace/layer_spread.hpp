// SPDX-License-Identifier: Apache-2.0
// Whether the recorded layers of a trace can speak for the whole model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kvbench::trace {

/// all: every layer of the model. evenly_spaced: at least two, one in each equal part of the model's depth or not more
/// than half of such a part away from it (with n layers, the parts are n-ths). alone: other layers, such as neighbours,
/// which say nothing about the rest: intervals that take five neighbours for a sample cover the mean over all layers in
/// 60 % of the cases instead of 95 %.
enum class LayerSpread { all, evenly_spaced, alone };

/// `layers`: increasing numbers below `of`, the number of layers of the model.
LayerSpread spread_of(std::span<const std::int64_t> layers, std::int64_t of);

/// Whether the layers that a result used of the replayed ones are units of a test about the model. In the others
/// methods do not run (sliding windows, --dense-layers), so that they count for nothing. Not units are the layers of a
/// model with fewer than five of them, where texts alone are; absent where the replayed layers stand for themselves
/// alone. `of` = 0: unknown, as few layers.
std::optional<bool> layers_are_units(std::span<const std::int64_t> replayed, std::size_t used, std::int64_t of);

/// "2, 5, 8, ..., 29 (10 of 30, evenly spaced): ...", with what comparisons over these layers hold for. `of` as above.
std::string describe_spread(std::span<const std::int64_t> layers, std::int64_t of);

}  // namespace kvbench::trace
