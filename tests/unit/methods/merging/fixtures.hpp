// SPDX-License-Identifier: Apache-2.0
// Heads with keys in two dimensions, whose cosines are known, and layers of such heads.
#pragma once

#include <array>
#include <numeric>
#include <utility>

#include <doctest/doctest.h>
#include <support/small.hpp>

#include <kvbench/methods/merging/merging_cache.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::testing {

using Key = std::array<float, 2>;

/// Token j has key keys[j] and value 2^j; every query is (1, 1), scale 1.
inline HeadData plane_head(const std::vector<Key>& keys, Index n) {
  HeadData head = small_head(std::vector<float>(keys.size(), 0), n);
  head.d = 2;
  head.keys.clear();
  for (const Key& key : keys) head.keys.insert(head.keys.end(), key.begin(), key.end());
  head.queries.assign(2 * keys.size(), 1);
  return head;
}

/// The eight tokens of the examples. Cosines among tokens 1 .. 6, A against B:
///           B 2 (4,3)   B 4 (0,1)   B 6 (0,2)
///   A 1 (1,0)   .8          0           0
///   A 3 (3,4)   .96         .8          .8
///   A 5 (1,0)   .8          0           0
inline HeadData eight_tokens() {
  return plane_head({{5, 5}, {1, 0}, {4, 3}, {3, 4}, {0, 1}, {1, 0}, {0, 2}, {5, 5}}, 8);
}

inline Buffer<const float> rows_of(std::vector<float> numbers, Index cols, Backend& backend = ref()) {
  const Index rows = static_cast<Index>(numbers.size()) / cols;
  return backend.adopt(std::move(numbers), rows, cols);
}

/// All tokens of a head as entries of degree 1.
inline methods::MergedEntries entries_of(const HeadData& head, Backend& backend) {
  const methods::HeadTokens tokens = tokens_of(head, head.total, backend);
  methods::MergedEntries entries{.keys = tokens.keys, .values = tokens.values};
  entries.ids.resize(static_cast<std::size_t>(head.total));
  std::iota(entries.ids.begin(), entries.ids.end(), 0);
  entries.degrees.assign(entries.ids.size(), 1);
  return entries;
}

/// The entries of a cache, by token, for a query after all of its tokens.
inline std::vector<Entry> held(const methods::EntryTables& tables, const HeadData& head, Backend& backend = ref()) {
  const methods::QueryBlock block = query_block(head, head.total - 1, head.total, head.total, backend);
  return visible_entries(head, tables, block, backend).front();
}
inline std::vector<Entry> held(const methods::CompressedCache& cache, const HeadData& head, Backend& backend = ref()) {
  return held(cache.entries({}), head, backend);
}

/// Tokens merged in each entry, by id.
inline std::vector<std::pair<TokenId, float>> degrees_of(const std::vector<Entry>& entries) {
  std::vector<std::pair<TokenId, float>> degrees;
  for (const Entry& entry : entries) {
    CHECK(entry.num == entry.den);
    degrees.emplace_back(entry.id, entry.den);
  }
  return degrees;
}

inline void check_merged(const Entry& entry, Key key, float value) {
  REQUIRE(entry.key.size() == 2);
  REQUIRE(entry.value.size() == 1);
  CHECK(entry.key[0] == doctest::Approx(key[0]));
  CHECK(entry.key[1] == doctest::Approx(key[1]));
  CHECK(entry.value[0] == doctest::Approx(value));
}

/// A method of granularity `layer` over these heads; they are numbered in order.
inline Session open_layer(const std::string& method, const std::vector<methods::Assignment>& settings,
                          std::vector<HeadData> heads, Index budget, Backend& backend = ref()) {
  std::vector<methods::HeadPrompt> prompts;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    heads[h].head = KvHeadId(static_cast<std::int64_t>(h));
    prompts.push_back(prompt_of(heads[h], backend));
    prompts.back().num_kv_heads = std::ssize(heads);
  }
  const methods::MethodInfo& info = methods::find_method(method);
  return {info.prepare(prompts, info.bind(settings), backend)(budget, 0), heads[0].n, info.observes, backend};
}

}  // namespace kvbench::testing
