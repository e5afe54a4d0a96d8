// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/self_check.hpp>

#include <cmath>

#include <doctest/doctest.h>

using namespace kvbench::kvdump;

namespace {

// Two query heads share one kv head; keys 0, ln 3, 0 and query 1 give weights 1, 3, 1 before normalisation.
LayerCapture example() {
  LayerCapture layer;
  layer.num_tokens = 3;
  layer.query_positions = {1, 2};
  layer.query_heads = 2;
  layer.kv_heads = 1;
  layer.head_dim = layer.value_dim = 1;
  layer.parameters.scale = 1;
  layer.keys = {0, std::log(3.0f), 0};
  layer.values = {4, 8, 10};
  layer.queries = {1, 1, 0, 0};
  layer.output = {7, 7.6f, 6, 22.0f / 3};  // (4 + 3*8)/4, (4 + 3*8 + 10)/5, (4 + 8)/2, (4 + 8 + 10)/3
  return layer;
}

}  // namespace

TEST_CASE("hand-computed attention passes") {
  const auto layer = example();
  CHECK(output_error(layer, 0) < 1e-6);
  CHECK(output_error(layer, 1) < 1e-6);
}

TEST_CASE("a wrong value is detected") {
  auto layer = example();
  layer.values[2] = 11;
  CHECK(output_error(layer, 0) == doctest::Approx(0.2 / std::sqrt(7 * 7 + 7.6 * 7.6)));
}

TEST_CASE("a sliding window excludes earlier tokens") {
  auto layer = example();
  layer.parameters.window = 2;
  layer.output = {7, 8.5f, 6, 9};  // position 2 attends to tokens 1 and 2: (3*8 + 10)/4, (8 + 10)/2
  CHECK(output_error(layer, 0) < 1e-6);
  CHECK(output_error(layer, 1) < 1e-6);
}

TEST_CASE("scale and softcap") {
  auto layer = example();
  layer.parameters.softcap = 2;
  layer.parameters.scale = 3;
  const double weight = std::exp(2 * std::tanh(3 * std::log(3.0) / 2));
  layer.output[0] = static_cast<float>((4 + weight * 8) / (1 + weight));
  layer.output[1] = static_cast<float>((4 + weight * 8 + 10) / (2 + weight));
  CHECK(output_error(layer, 0) < 1e-6);
}

TEST_CASE("the check does not accumulate rounding errors over long contexts") {
  LayerCapture layer;
  layer.num_tokens = 20000;
  layer.query_positions = {19999};
  layer.query_heads = layer.kv_heads = layer.head_dim = layer.value_dim = 1;
  layer.parameters.scale = 1;
  layer.keys.assign(20000, 0.3f);
  layer.values.assign(20000, 0.1f);  // sums of 0.1 in fp32 are off by 1e-4 here
  layer.queries = {7};
  layer.output = {0.1f};
  CHECK(output_error(layer, 0) < 1e-7);
}

TEST_CASE("NaN does not pass") {
  auto layer = example();
  layer.values[0] = NAN;
  CHECK_FALSE(output_error(layer, 0) <= check_tolerance);
}
