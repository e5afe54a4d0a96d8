// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/node_name.hpp>

#include <charconv>
#include <utility>

namespace kvbench::llama {
namespace {

constexpr std::pair<std::string_view, Role> roles[] = {
    {"Qcur", Role::query},
    {"Kcur", Role::key},
    {"Vcur", Role::value},
    {"Qcur_normed", Role::normed_query},
    {"Kcur_normed", Role::normed_key},
    {"kq_soft_max", Role::softmax},
    {"kqv_out", Role::output},
    {"attn_norm", Role::attention_input},
    {"l_out", Role::hidden},
};

}  // namespace

std::optional<NodeName> parse_node_name(std::string_view name) {
  const auto dash = name.rfind('-');
  if (dash == name.npos) return std::nullopt;
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data() + dash + 1, name.data() + name.size(), layer);
  if (error != std::errc() || end != name.data() + name.size() || layer < 0) return std::nullopt;
  for (const auto& [text, role] : roles) {
    if (name.substr(0, dash) == text) return NodeName{role, layer};
  }
  return std::nullopt;
}

}  // namespace kvbench::llama
