// SPDX-License-Identifier: Apache-2.0
// Numbers that must not be swapped by accident.
#pragma once

#include <compare>
#include <cstdint>

namespace kvbench {

template <class Tag>
struct StrongId {
  std::int32_t value = 0;
  constexpr StrongId() = default;
  constexpr explicit StrongId(std::int64_t v) : value(static_cast<std::int32_t>(v)) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using PromptId = StrongId<struct PromptTag>;  ///< index of the prompt in its trace
using LayerId = StrongId<struct LayerTag>;    ///< layer number of the model, not its place in the trace
using KvHeadId = StrongId<struct KvHeadTag>;  ///< kv head within its layer
/// Position of a token in its prompt.
using TokenId = std::int32_t;

}  // namespace kvbench
