// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Weights 1 and 3, values 1 and 2: (1 * 1 + 3 * 2) / 4.
TEST_CASE("exact answers with the whole cache at any budget") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(logs({1, 3}), 1);
  const auto cache = open_cache("exact", {}, prompt_of(head, *backend), 1, 0, *backend);
  append(*cache, token_block(head, 1, 2, *backend));
  const QueryBlock block = query_block(head, 1, 2, 2, *backend);
  CHECK(answer(head, block, cache->entries(block), *backend)[0] == doctest::Approx(1.75));
  CHECK(cache->footprint()[0].rows == 2);
}
