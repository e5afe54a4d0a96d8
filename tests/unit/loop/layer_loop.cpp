// SPDX-License-Identifier: Apache-2.0
// The loop gives what a replay of the trace with the same tokens gives, for every method, whatever ran before.
#include <kvbench/loop/layer_loop.hpp>

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

#include <unit/loop/layers.hpp>

using namespace kvbench;
using namespace kvbench::loop;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// What a replay of the trace gives for the configuration, by head of all layers.
std::vector<HeadResult> replayed(const trace::Reader& reader, const LoopConfiguration& c) {
  ReplayRequest request;
  request.methods = {c.method};
  request.budgets = {c.budget};
  request.seeds = {c.seed};
  request.protocol = Protocol::decode;
  return replay::replay(reader, request, serial).heads;
}

void check_equal(const LayerAnswer& answer, std::span<const HeadResult> expected) {
  std::vector<float> outputs;
  REQUIRE(answer.heads.size() == expected.size());
  for (std::size_t h = 0; h < expected.size(); ++h) {
    const ConfigurationResult &result = answer.heads[h], &other = expected[h].results[0];
    CHECK(result.status == other.status);
    CHECK(result.reason == other.reason);
    CHECK(result.budget_tokens == other.budget_tokens);
    CHECK(result.bytes.kv == other.bytes.kv);
    REQUIRE(result.metrics.size() == other.metrics.size());
    for (std::size_t r = 0; r < result.metrics.size(); ++r)
      CHECK(metric(result, r, Metric::rel_err) == metric(other, r, Metric::rel_err));
    if (other.raw) outputs.insert(outputs.end(), other.raw->output.begin(), other.raw->output.end());
  }
  const bool finite = std::ranges::all_of(outputs, [](float x) { return std::isfinite(x); });
  if (expected[0].results[0].status == Status::ok) CHECK((answer.status == Status::ok) == finite);
  if (answer.status == Status::ok) CHECK(answer.outputs == outputs);
}

}  // namespace

TEST_CASE("the loop gives what replay gives, for every method, budget and order") {
  const SmallTrace trace(loop_options());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layers[] = {Layer(trace.reader(), 0), Layer(trace.reader(), 1)};
  LayerLoop loop(info, {}, serial);
  const auto heads = static_cast<std::size_t>(info.num_kv_heads);
  Index ran = 0;
  for (const char* budget : {"50%", "40%mem", "25%"}) {
    for (const LoopConfiguration& c : configurations(budget)) {
      CAPTURE(c.method.info->name);
      CAPTURE(c.method.params.text());
      CAPTURE(budget);
      const std::vector<HeadResult> expected = replayed(trace.reader(), c);
      loop.start(c);
      for (std::size_t l = 0; l < 2; ++l) {
        const LayerAnswer answer = loop.answer(l, layers[l].arrays());
        check_equal(answer, std::span(expected).subspan(l * heads, heads));
        ran += answer.status == Status::ok;
      }
    }
  }
  CHECK(ran > 100);
}

TEST_CASE("scored tokens do not see the state of an earlier pass with other scored tokens") {
  const SmallTrace trace(loop_options());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layer(trace.reader(), 0);
  Layer other = layer;
  for (Index h = 0; h < info.num_kv_heads; ++h) {  // the scored tokens only
    for (Index t = context; t < context + scored; ++t)
      other.keys[static_cast<std::size_t>((h * (context + scored) + t) * 8)] += 1;
  }
  for (const LoopConfiguration& c : configurations("30%")) {
    CAPTURE(c.method.info->name);
    LayerLoop loop(info, {}, serial);
    loop.start(c);
    const LayerAnswer first = loop.answer(0, layer.arrays());
    const LayerAnswer between = loop.answer(0, other.arrays());
    LoopConfiguration less = c;
    less.budget = Budget::parse("20%");
    loop.start(less);
    loop.answer(0, other.arrays());
    loop.start(c);
    CHECK(loop.answer(0, layer.arrays()).outputs == first.outputs);
    if (c.method.info->name == "exact") CHECK(between.outputs != first.outputs);
  }
}

TEST_CASE("tokens one at a time equal all tokens in one batch, for every method") {
  const SmallTrace trace(loop_options());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layer(trace.reader(), 0);
  const Index dv = info.value_dim;
  for (const LoopConfiguration& c : configurations("30%")) {
    CAPTURE(c.method.info->name);
    CAPTURE(c.method.params.text());
    LayerLoop whole(info, {}, serial);
    whole.start(c);
    const LayerAnswer batch = whole.answer(0, layer.arrays());
    for (Index steps = 1; steps <= scored; ++steps) {
      LayerLoop loop(shortened(info, context + steps), {}, serial);
      loop.start(c);
      const LayerAnswer answer = loop.answer(0, shortened(layer, info, context + steps).arrays());
      if (batch.status == Status::ok) CHECK(answer.status == Status::ok);
      if (answer.status != Status::ok || batch.status != Status::ok) break;
      for (Index h = 0; h < info.num_query_heads; ++h) {
        for (Index i = 0; i < dv; ++i) {
          const float a = answer.outputs[static_cast<std::size_t>((h * steps + steps - 1) * dv + i)];
          const float b = batch.outputs[static_cast<std::size_t>((h * scored + steps - 1) * dv + i)];
          CHECK(a == doctest::Approx(b).epsilon(1e-4).scale(1e-2));
        }
      }
    }
  }
}

TEST_CASE("threads do not change results") {
  const SmallTrace trace(loop_options());
  const Layer layer(trace.reader(), 0);
  for (const LoopConfiguration& c : configurations("30%")) {
    ReplayRequest request;
    request.methods = {c.method};  // those of the request are ignored
    std::vector<std::vector<float>> outputs;
    for (const int threads : {1, 3}) {
      RunOptions options = serial;
      options.threads = threads;
      LayerLoop loop(trace.reader().info(), request, options);
      loop.start(c);
      outputs.push_back(loop.answer(0, layer.arrays()).outputs);
    }
    CHECK(outputs[0] == outputs[1]);
  }
}

TEST_CASE("arrays of other shapes are refused by name") {
  const SmallTrace trace(loop_options());
  const Layer whole(trace.reader(), 0);
  Layer values = whole, output = whole;
  values.values.pop_back();
  output.output.clear();
  LayerLoop loop(trace.reader().info(), {}, serial);
  loop.start(configurations("30%").front());
  CHECK_THROWS_WITH_AS(loop.answer(0, values.arrays()), doctest::Contains("`values`"), Error);
  CHECK_THROWS_WITH_AS(loop.answer(0, output.arrays()), doctest::Contains("`output`"), Error);
}
