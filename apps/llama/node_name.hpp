// SPDX-License-Identifier: Apache-2.0
// The names that llama.cpp gives to the nodes of an attention layer. Consecutive nodes may share a name; capture.cpp
// distinguishes them by operation and shape.
#pragma once

#include <optional>
#include <string_view>

namespace kvbench::llama {

enum class Role { query, key, value, normed_query, normed_key, softmax, output, attention_input, hidden };

struct NodeName {
  Role role;
  int layer;
};

/// "Qcur-7" -> {query, 7}. The match is exact, because "Qcur-7 (view)" and "Qcur-7 (reshaped)" are other nodes.
std::optional<NodeName> parse_node_name(std::string_view name);

}  // namespace kvbench::llama
