// SPDX-License-Identifier: Apache-2.0
// Typed indices, which the compiler does not convert into each other.
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
using LayerId = StrongId<struct LayerTag>;    ///< layer number in the model, not its index in the trace
using KvHeadId = StrongId<struct KvHeadTag>;  ///< kv head within its layer
/// Position of a token in its prompt.
using TokenId = std::int32_t;

}  // namespace kvbench
