// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The entries that answer the query at `position`; token 4 is after the context.
std::vector<Entry> entries_of(const CompressedCache& cache, const HeadData& head, Backend& backend,
                              Index position = 4) {
  const QueryBlock block = query_block(head, position, position + 1, position + 1, backend);
  return visible_entries(head, cache.entries(block), block, backend)[0];
}

}  // namespace

// Keys 1 3 -2 -4, values 1 2 4 8, starts 0 and 2. In one dimension the cosine is the sign: {0 1} and {2 3}, keys 2 and
// -3, values 1.5 and 6, two tokens each.
TEST_CASE("kmeans answers from the means of keys and values, weighted by the number of tokens") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({1, 3, -2, -4, 0}, 4);
  const auto cache = open_cache("kmeans", {}, prompt_of(head, *backend), 2, 0, *backend);
  CHECK(entries_of(*cache, head, *backend) == std::vector<Entry>{{1, 2, 2, {2}, {1.5}}, {3, 2, 2, {-3}, {6}}});
  const QueryBlock block = query_block(head, 4, 5, 5, *backend);
  const double a = 2 * std::exp(2.0), b = 2 * std::exp(-3.0);
  CHECK(answer(head, block, cache->entries(block), *backend)[0] == doctest::Approx((a * 1.5 + b * 6) / (a + b)));

  // Decoded tokens are kept exactly.
  CHECK(append(*cache, token_block(head, 4, 5, *backend)) == 1);
  CHECK(answer(head, block, cache->entries(block), *backend)[0] ==
        doctest::Approx((a * 1.5 + b * 6 + 16) / (a + b + 1)));
}

// Keys 1 2 9 10: one sign, so that the cosine puts all into cluster 0, while distances split them.
TEST_CASE("kmeans drops empty clusters, and distance=l2 depends on lengths") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({1, 2, 9, 10, 0}, 4);
  const auto cosine = open_cache("kmeans", {}, prompt_of(head, *backend), 2, 0, *backend);
  CHECK(entries_of(*cosine, head, *backend) == std::vector<Entry>{{3, 4, 4, {5.5}, {3.75}}});
  const auto l2 = open_cache("kmeans", {{"distance", "l2"}}, prompt_of(head, *backend), 2, 0, *backend);
  CHECK(entries_of(*l2, head, *backend) == std::vector<Entry>{{1, 2, 2, {1.5}, {1.5}}, {3, 2, 2, {9.5}, {6}}});
}

// Keys 0 9 1 10, starts 0 and 2: {0} {9 1 10} at first; a second iteration moves 1 over.
TEST_CASE("kmeans starts from evenly spaced tokens and stops after its iterations") {
  const auto backend = make_ref_backend();
  const std::vector<Assignment> once = {{"distance", "l2"}, {"iterations", "1"}};
  const HeadData line = small_head({0, 9, 1, 10, 5}, 4);
  const auto cache = open_cache("kmeans", once, prompt_of(line, *backend), 2, 0, *backend);
  CHECK(entries_of(*cache, line, *backend) == std::vector<Entry>{{0}, {3, 3, 3, {20.0f / 3}, {14.0f / 3}}});
  const auto ten = open_cache("kmeans", {{"distance", "l2"}}, prompt_of(line, *backend), 2, 0, *backend);
  CHECK(entries_of(*ten, line, *backend) == std::vector<Entry>{{2, 2, 2, {.5}, {2.5}}, {3, 2, 2, {9.5}, {5}}});
}

// Clusters {0 3} and {1 2}: a query at position 2 may attend to all tokens of the second only.
TEST_CASE("kmeans masks a cluster for queries that may not attend to all of it") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({1, -1, -1, 3, 0}, 4);
  const auto cache = open_cache("kmeans", {}, prompt_of(head, *backend), 3, 0, *backend);
  CHECK(ids_of(entries_of(*cache, head, *backend)) == Ids{2, 3});
  CHECK(ids_of(entries_of(*cache, head, *backend, 2)) == Ids{2});
}

// Two keys of one direction would be in one cluster; a budget of all tokens keeps both.
TEST_CASE("kmeans keeps all tokens where the budget holds them") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({1, 3, 3, -4, 0}, 4);
  for (const Index budget : {4, 9}) {
    const auto cache = open_cache("kmeans", {}, prompt_of(head, *backend), budget, 0, *backend);
    CHECK(entries_of(*cache, head, *backend) == std::vector<Entry>{{0}, {1}, {2}, {3}});
  }
}
