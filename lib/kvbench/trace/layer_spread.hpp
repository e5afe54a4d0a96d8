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

/// The number of layers of the model that a result stands for which used some of the replayed layers: itself where
/// these are all but the layers in which methods do not run (sliding windows, --dense-layers), which count for nothing.
/// None where the replayed layers are not evenly spaced. `of` = 0: unknown, the result stands for the used layers.
std::optional<std::size_t> represented_layers(std::span<const std::int64_t> replayed, std::size_t used,
                                              std::int64_t of);

/// "2, 5, 8, ..., 29 (10 of 30, evenly spaced): ...", with what comparisons over these layers hold for.
std::string describe_spread(std::span<const std::int64_t> layers, std::int64_t of);

}  // namespace kvbench::trace
