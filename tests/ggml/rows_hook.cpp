// SPDX-License-Identifier: Apache-2.0
#include "rows_hook.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <ggml-cpu.h>

namespace kvbench::testing {
namespace {

using llama::Role;

/// Each block times the Hadamard matrix / sqrt(block), in fp64.
void rotate(std::span<float> row, std::size_t block) {
  for (std::size_t begin = 0; begin < row.size(); begin += block) {
    std::vector<double> x(row.begin() + begin, row.begin() + begin + block);
    for (std::size_t h = 1; h < block; h *= 2)
      for (std::size_t j = 0; j < block; ++j)
        if ((j & h) == 0) std::tie(x[j], x[j + h]) = std::pair(x[j] + x[j + h], x[j] - x[j + h]);
    for (std::size_t j = 0; j < block; ++j)
      row[begin + j] = static_cast<float>(x[j] / std::sqrt(static_cast<double>(block)));
  }
}

void round_row(std::span<float> row, const CacheRounding& rounding, Role role) {
  std::size_t block = 64;
  while (role != Role::value && row.size() % (2 * block) == 0) block *= 2;
  const ggml_type type = role == Role::query ? ggml_get_type_traits_cpu(rounding.type)->vec_dot_type : rounding.type;
  const auto size = static_cast<std::int64_t>(row.size());
  std::vector<char> bytes(ggml_row_size(type, size));
  if (rounding.rotated) rotate(row, block);
  ggml_get_type_traits_cpu(type)->from_float(row.data(), bytes.data(), size);
  ggml_get_type_traits(type)->to_float(bytes.data(), row.data(), size);
  if (rounding.rotated) rotate(row, block);
}

}  // namespace

bool RowsHook::on_node(ggml_tensor* node, bool ask, void* self) {
  auto& hook = *static_cast<RowsHook*>(self);
  const auto name = llama::parse_node_name(node->name);
  if (!name || !hook.wants(node, name->role)) return !ask;
  if (!ask) hook.change(node, *name);
  return true;
}

bool RowsHook::wants(const ggml_tensor* node, Role role) const {
  if (node->ne[2] != batch_.count) return false;
  if (role == Role::value) return node->ne[1] == kv_heads_;
  return (role == Role::key || (role == Role::query && batch_.queries)) && node->op == GGML_OP_ROPE;
}

void RowsHook::change(ggml_tensor* node, llama::NodeName name) {
  const auto dim = static_cast<std::size_t>(node->ne[0]), heads = static_cast<std::size_t>(node->ne[1]);
  std::vector<float>& recorded = recorded_[{name.layer, name.role}];
  const std::size_t end = static_cast<std::size_t>(batch_.begin + batch_.count) * heads * dim;
  if (batch_.rows == Batch::Rows::recorded) recorded.resize(std::max(recorded.size(), end));
  for (std::size_t t = 0; t < static_cast<std::size_t>(batch_.count); ++t)
    for (std::size_t h = 0; h < heads; ++h) {
      const std::span row(reinterpret_cast<float*>(static_cast<char*>(node->data) + t * node->nb[2] + h * node->nb[1]),
                          dim);
      const std::size_t at = ((static_cast<std::size_t>(batch_.begin) + t) * heads + h) * dim;
      if (batch_.rows == Batch::Rows::recorded) std::copy(row.begin(), row.end(), recorded.begin() + at);
      if (batch_.rows == Batch::Rows::replaced) std::copy_n(recorded.begin() + at, dim, row.begin());
      if (batch_.rounding) round_row(row, *batch_.rounding, name.role);
    }
}

}  // namespace kvbench::testing
