// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/layer_spread.hpp>

#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace kvbench::trace::test {
namespace {

LayerSpread of_thirty(std::vector<std::int64_t> layers) { return spread_of(layers, 30); }

TEST_CASE("layers are evenly spaced where each equal part of the depth has one of at least five") {
  CHECK(of_thirty({2, 5, 8, 11, 14, 17, 20, 23, 26, 29}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({0, 6, 12, 18, 24}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({5, 11, 17, 23, 29}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({1, 8, 15, 21, 28}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({0, 5, 12, 18, 24}) == LayerSpread::clustered);   // none in 6 to 11
  CHECK(of_thirty({0, 12, 17, 18, 24}) == LayerSpread::clustered);  // two in 12 to 17
  CHECK(of_thirty({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == LayerSpread::clustered);
  CHECK(of_thirty({0, 8, 16, 24}) == LayerSpread::few);
  CHECK(spread_of(std::vector<std::int64_t>{0, 1}, 2) == LayerSpread::all);
}

TEST_CASE("parts of the depth need not have whole numbers of layers") {
  CHECK(spread_of(std::vector<std::int64_t>{0, 2, 3, 5, 6}, 7) == LayerSpread::evenly_spaced);  // parts of 1.4 layers
  CHECK(spread_of(std::vector<std::int64_t>{0, 1, 3, 5, 6}, 7) == LayerSpread::clustered);      // 1 < 1.4
}

TEST_CASE("a description says what conclusions hold for") {
  CHECK(describe_spread(std::vector<std::int64_t>{2, 5, 8, 11, 14, 17, 20, 23, 26, 29}, 30) ==
        "2, 5, 8, ..., 29 (10 of 30, evenly spaced): comparisons hold for all layers, with their interval over layers");
  CHECK(describe_spread(std::vector<std::int64_t>{3}, 30) ==
        "3 (1 of 30, fewer than 5): conclusions hold for these layers alone");
  CHECK(describe_spread(std::vector<std::int64_t>{0, 1, 2, 3, 4}, 30) ==
        "0, 1, 2, 3, 4 (5 of 30, not evenly spaced): conclusions hold for these layers alone");
  std::vector<std::int64_t> all(30);
  std::iota(all.begin(), all.end(), 0);
  CHECK(describe_spread(all, 30) == "all 30: conclusions hold for the whole model");
}

}  // namespace
}  // namespace kvbench::trace::test
