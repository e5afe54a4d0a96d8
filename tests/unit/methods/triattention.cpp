// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <support/turning.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

// Queries are (1, 0), so that no length is beyond that of their mean: the score of a key is its product with the mean
// of the queries at the positions 5 and, with a reach of 2, 6.
TEST_CASE("triattention compares keys with the mean query at positions ahead") {
  const auto backend = make_ref_backend();
  std::vector<float> keys;
  for (const double angle : {1.0, 5.0, 5.6, 3.0, 0.0}) add_key(keys, 1, angle);
  const HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 4);
  const auto kept = [&](const char* reach) {
    return kept_tokens("triattention", {{"reach", reach}}, head, 1, *backend);
  };
  CHECK(kept("1") == Ids{1});
  CHECK(kept("2") == Ids{2});  // in the mean 5.5
}

// Queries (2, 0) and (-2, 0) have the mean 0 and the mean length 2: the longest keys are kept, wherever they point.
TEST_CASE("triattention keeps long keys where queries scatter") {
  const auto backend = make_ref_backend();
  std::vector<float> keys;
  add_key(keys, 1, 5), add_key(keys, 3, 2), add_key(keys, 2, 1), add_key(keys, 1, 5), add_key(keys, 1, 0);
  const HeadData head = turning_head(keys, {2, 0, -2, 0, 2, 0, -2, 0, 1, 0}, 4);
  CHECK(kept_tokens("triattention", {}, head, 1, *backend) == Ids{1});
  CHECK(kept_tokens("triattention", {}, head, 2, *backend) == Ids{1, 2});
}

// Head 0 has the scores 3 1 0 0 times a constant: mean 1, deviation 1.22, z 1.63 0 -.82 -.82. Head 1, with queries of a
// tenth of the length that point against the keys, has -3 -1 0 0: z -1.63 0 .82 .82. The maximum is 1.63 0 .82 .82, the
// mean 0 for all.
TEST_CASE("triattention compares z-scores of the query heads") {
  const auto backend = make_ref_backend();
  std::vector<float> keys;
  add_key(keys, 3, 5), add_key(keys, 1, 5), keys.resize(10);
  HeadData head = turning_head(keys, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0}, 4);
  head.group = 2;
  for (std::size_t i = 0; i < 10; ++i) head.queries.push_back(-0.1f * head.queries[i]);
  const auto kept = [&](const char* reduce, Index budget) {
    return kept_tokens("triattention", {{"reach", "1"}, {"reduce", reduce}}, head, budget, *backend);
  };
  CHECK(kept("max", 1) == Ids{0});
  CHECK(kept("max", 3) == Ids{0, 2, 3});
}
