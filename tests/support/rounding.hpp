// SPDX-License-Identifier: Apache-2.0
// What a quantiser makes of keys that a test gives.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <support/backends.hpp>

#include <kvbench/testing/head.hpp>

#include <kvbench/methods/registry.hpp>

namespace kvbench::testing {

/// A context of tokens with these keys [n, d], which are their values too.
inline HeadData head_of(const std::vector<float>& rows, Index n) {
  const auto d = static_cast<Index>(rows.size()) / n;
  HeadData head{.n = n, .total = n, .d = d, .dv = d, .keys = rows, .values = rows};
  head.queries.assign(static_cast<std::size_t>(n * d), 1);
  return head;
}

struct RoundedRows {
  std::vector<float> keys, values;  ///< [n, d]
};
/// The rows that attention reads where the method stores n tokens with these keys and values, at its first level.
inline RoundedRows rounded_rows(const std::string& method, const std::vector<methods::Assignment>& settings,
                                const std::vector<float>& rows, Index n = 1, std::uint32_t seed = 0) {
  const HeadData head = head_of(rows, n);
  const methods::MethodInfo& info = methods::find_method(method);
  const auto cache = info.prepare_head(prompt_of(head, ref()), info.bind(settings), ref())(1, seed);
  const methods::EntryTables tables = cache->entries(query_block(head, n - 1, n, n, ref()));
  return {ref().read(tables.front().own_keys), ref().read(tables.front().own_values)};
}
inline std::vector<float> rounded_keys(const std::string& method, const std::vector<methods::Assignment>& settings,
                                       const std::vector<float>& rows, Index n = 1) {
  return rounded_rows(method, settings, rows, n).keys;
}

/// Rows of `d` numbers: random, zeros, constants, one huge number, subnormals of f16, both signs of nearly one size.
inline std::vector<std::vector<float>> hostile_blocks(Index d) {
  const auto count = static_cast<std::size_t>(d);
  std::vector<std::vector<float>> rows = {random_numbers(d, 1, 1), random_numbers(d, 2, 1), std::vector(count, 0.0f),
                                          std::vector(count, -3.25f)};
  rows.push_back(random_numbers(d, 3, 1));
  rows.back()[count / 2] = 6e4f;
  rows.push_back(random_numbers(d, 4, 1));
  for (float& x : rows.back()) x *= 0x1p-20f;
  rows.push_back(random_numbers(d, 5, 1));
  for (float& x : rows.back()) x = std::copysign(2.0f, x) + x * 0x1p-12f;
  return rows;
}

}  // namespace kvbench::testing
