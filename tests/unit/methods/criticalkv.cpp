// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/eviction/given_scores.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The tokens that criticalkv keeps of a context with these scores and values 1 2 4 8 16 32 64, where the two query
/// heads have sketches of one number whose magnitudes are 1 and 3.
Ids kept(Index budget, std::vector<Assignment> settings, std::vector<float> given = {8, 7, 6, 5, 4, 3, 2}) {
  const auto backend = make_ref_backend();
  const HeadData head = small_head(std::vector<float>(8, 0), 7, 2);
  HeadPrompt prompt = prompt_of(head, *backend);
  prompt.prompt_group = "0";
  prompt.layer = LayerId(0);
  prompt.num_kv_heads = 1;
  prompt.output_sketch = backend->adopt(std::vector<float>{1, -3}, 2, 1);
  const MethodInfo scores = given_scores_method("scores:s.h5", {"s.h5", "", {{"0", {{0, {1, 7, std::move(given)}}}}}});
  const MethodInfo info = wrap(all_wrappers().back(), scores);
  const auto cache = info.prepare_head(prompt, info.bind(settings), *backend)(budget, 0);
  return answering(*cache, query_block(head, 7, 8, 8, *backend), head, *backend);
}

}  // namespace

// Mean norms 2 4 8 16 32 64 128; scores times norms: 16 28 48 80 128 192 256.
TEST_CASE("criticalkv keeps the best scores, then the largest products with the norm of the output") {
  CHECK(all_wrappers().back().info.name == "criticalkv");
  CHECK(kept(4, {}) == Ids{0, 1, 5, 6});  // int(0.5 * 4) = 2 by scores
  CHECK(kept(3, {}) == Ids{0, 5, 6});     // int(1.5) = 1
  CHECK(kept(4, {{"first", "1"}}) == Ids{0, 1, 2, 3});
  CHECK(kept(4, {{"first", "0"}}) == Ids{3, 4, 5, 6});
  CHECK(kept(7, {}) == Ids{0, 1, 2, 3, 4, 5, 6});
  // Token 0 is kept anyway and counts as one of two of the first stage: token 1 is the other one.
  CHECK(kept(4, {{"sinks", "1"}}) == Ids{0, 1, 5, 6});
  CHECK(kept(4, {{"sinks", "3"}}) == Ids{0, 1, 2, 6});
  CHECK(kept(1, {}) == Ids{6});
}

// Scores times norms: 1800 28 48 80 128 192 256. With a large epsilon the norms alone decide.
TEST_CASE("epsilon of criticalkv lets the norm outweigh the score") {
  const std::vector<float> scores = {900, 7, 6, 5, 4, 3, 2};
  CHECK(kept(2, {{"first", "0"}, {"epsilon", "0"}}, scores) == Ids{0, 6});
  CHECK(kept(2, {{"first", "0"}, {"epsilon", "1e6"}}, scores) == Ids{5, 6});
}

TEST_CASE("criticalkv is unavailable without sketches, and keeps the plan of its method") {
  const auto backend = make_ref_backend();
  HeadPrompt prompt = prompt_of(random_head({}, 1, *backend), *backend);
  prompt.output_sketch = {};
  const MethodInfo& info = find_method("criticalkv(snapkv)");
  CHECK(info.granularity == Granularity::kv_head);
  CHECK(info.needs == std::vector<Part>{Part::output_sketch, Part::observed_queries});
  CHECK_THROWS_WITH_AS(info.prepare_head(prompt, info.bind(std::vector<Assignment>{{"window", "4"}}), *backend),
                       doctest::Contains("kvbench-dump-hf"), Unavailable);
  CHECK(find_method("criticalkv(pyramidkv)").plan != nullptr);
}
