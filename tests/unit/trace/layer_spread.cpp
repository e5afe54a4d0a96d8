// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/layer_spread.hpp>

#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace kvbench::trace::test {
namespace {

LayerSpread of_thirty(std::vector<std::int64_t> layers) { return spread_of(layers, 30); }

TEST_CASE("layers are evenly spaced where none is more than half a part outside its equal part of the depth") {
  CHECK(of_thirty({2, 5, 8, 11, 14, 17, 20, 23, 26, 29}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({0, 6, 12, 18, 24}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({0, 7, 15, 22, 29}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({3, 9, 15, 21, 29}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({2, 9, 15, 21, 29}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({0, 2, 12, 18, 24}) == LayerSpread::alone);  // the second part is 6 to 11, with its half 3 to 14
  CHECK(of_thirty({0, 15, 16, 18, 24}) == LayerSpread::alone);
  CHECK(of_thirty({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) == LayerSpread::alone);
  CHECK(of_thirty({0, 8, 16, 24}) == LayerSpread::evenly_spaced);
  CHECK(of_thirty({0, 1}) == LayerSpread::alone);
  CHECK(of_thirty({15}) == LayerSpread::alone);
  CHECK(spread_of(std::vector<std::int64_t>{0, 1}, 2) == LayerSpread::all);
  CHECK(spread_of(std::vector<std::int64_t>{0, 5, 10, 15, 20, 25}, 32) == LayerSpread::evenly_spaced);
  CHECK(spread_of(std::vector<std::int64_t>{0}, 1) == LayerSpread::all);
}

TEST_CASE("evenly spaced layers are units, and five or more of a model all of whose layers were replayed") {
  std::vector<std::int64_t> all(18);
  std::iota(all.begin(), all.end(), 0);
  CHECK(layers_are_units(all, 18, 18) == true);
  CHECK(layers_are_units(all, 3, 18) == false);  // the others have a sliding window
  CHECK(layers_are_units(std::vector<std::int64_t>{0, 6, 12}, 3, 18) == true);
  CHECK(!layers_are_units(std::vector<std::int64_t>{0, 1, 2}, 3, 18));
  CHECK(layers_are_units(std::vector<std::int64_t>{0, 1, 2}, 3, 0) == false);  // unknown
}

TEST_CASE("a description says what comparisons hold for") {
  CHECK(describe_spread(std::vector<std::int64_t>{2, 5, 8, 11, 14, 17, 20, 23, 26, 29}, 30) ==
        "2, 5, 8, ..., 29 (10 of 30, evenly spaced): comparisons of relative errors hold for all layers, with their "
        "interval over layers");
  CHECK(describe_spread(std::vector<std::int64_t>{3, 7}, 0) ==
        "3, 7 (2, not evenly spaced): comparisons hold for these layers alone");
  CHECK(describe_spread(std::vector<std::int64_t>{3}, 30) == "3 (1 of 30): comparisons hold for this layer alone");
  CHECK(describe_spread(std::vector<std::int64_t>{0, 8, 16, 24}, 30) ==
        "0, 8, 16, 24 (4 of 30, evenly spaced): comparisons of relative errors hold for all layers, with intervals so "
        "wide that few are decided");
  CHECK(describe_spread(std::vector<std::int64_t>{0, 1, 2, 3, 4}, 30) ==
        "0, 1, 2, 3, 4 (5 of 30, not evenly spaced): comparisons hold for these layers alone");
  std::vector<std::int64_t> all(30);
  std::iota(all.begin(), all.end(), 0);
  CHECK(describe_spread(all, 30) == "all 30: comparisons hold for the whole model");
}

}  // namespace
}  // namespace kvbench::trace::test
