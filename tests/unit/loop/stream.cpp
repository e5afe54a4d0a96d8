// SPDX-License-Identifier: Apache-2.0
// Documents whose context passes through the cache, too: the loop and the decoder give what a replay gives.
#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/loop/decoder.hpp>
#include <kvbench/loop/layer_loop.hpp>
#include <kvbench/replay/replay.hpp>

#include <unit/loop/layers.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

constexpr Index tokens = context + scored;

trace::SynthOptions every_query() {
  trace::SynthOptions options = loop_options();
  options.num_queries = tokens;
  return options;
}

ReplayRequest stream() { return {.protocol = Protocol::stream}; }

/// The outputs that a replay stores of a layer, [query_heads, tokens, dv]; empty where a head has none.
std::vector<float> replayed(const trace::Reader& reader, const LoopConfiguration& c, std::int64_t layer) {
  ReplayRequest request = c.in(stream());
  request.layers = {layer};
  RunOptions options = serial;
  options.keep_raw = true;
  std::vector<float> outputs;
  for (const HeadResult& head : replay::replay(reader, request, options).heads) {
    const ConfigurationResult& result = head.results.front();
    if (result.status != Status::ok) return {};
    outputs.insert(outputs.end(), result.raw->output.begin(), result.raw->output.end());
  }
  return outputs;
}

Layer between(const Layer& layer, const trace::TraceInfo& info, Index begin, Index count) {
  Layer part = layer;
  part.keys = rows_of(layer.keys, info.num_kv_heads, begin, count, info.head_dim);
  part.values = rows_of(layer.values, info.num_kv_heads, begin, count, info.value_dim);
  part.queries = rows_of(layer.queries, info.num_query_heads, begin, count, info.head_dim);
  return part;
}

}  // namespace

TEST_CASE("a stream in the loop and in a decoder, in calls of any size, gives the outputs of a replay") {
  const SmallTrace trace(every_query());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layer(trace.reader(), 0);
  Index ran = 0, refused = 0;
  for (const char* budget : {"30%", "40%mem", "100%"}) {
    for (const LoopConfiguration& c : configurations(budget)) {
      if (looks_ahead(c)) continue;
      CAPTURE(c.method.info->name);
      CAPTURE(c.method.params.text());
      CAPTURE(budget);
      LayerLoop loop(info, stream(), serial);
      loop.start(c);
      const LayerAnswer answer = loop.answer(0, layer.arrays());
      Decoder decoder(info, stream(), serial, c);
      if (answer.status != Status::ok) {
        CHECK_THROWS_AS(decoder.begin(0, layer.arrays()), Error);
        refused += answer.reason.find("not a streaming algorithm") != std::string::npos;
        continue;
      }
      const std::vector<float> expected = replayed(trace.reader(), c, info.prompts[0].layers[0].layer);
      CHECK(answer.outputs == expected);
      decoder.compress(0, layer.arrays());
      for (Index begin = 0; begin < tokens;) {
        const Index count = begin == 0 ? 40 : begin == 40 ? 1 : tokens - begin;
        check_close(decoder.answer(0, count, between(layer, info, begin, count).arrays()),
                    rows_of(expected, info.num_query_heads, begin, count, info.value_dim));
        begin += count;
      }
      ++ran;
    }
  }
  CHECK(ran > 60);
  CHECK(refused > 60);
}

// Of the tokens that have not come yet the loop knows other keys than those that will come, as in a model.
TEST_CASE("later tokens of a stream change no output of earlier ones") {
  const SmallTrace trace(every_query());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layer(trace.reader(), 0);
  Layer other = layer;
  for (Index h = 0; h < info.num_kv_heads; ++h) {
    for (Index t = 64; t < tokens; ++t) other.keys[static_cast<std::size_t>((h * tokens + t) * info.head_dim)] += 1;
  }
  for (const char* name : {"int", "fp8", "h2o", "sink"}) {
    CAPTURE(name);
    LayerLoop loop(info, stream(), serial);
    loop.start({{&methods::find_method(name), methods::find_method(name).bind({})}, Budget::parse("100%mem"), 0});
    const LayerAnswer a = loop.answer(0, layer.arrays()), b = loop.answer(0, other.arrays());
    REQUIRE(a.status == Status::ok);
    const auto first = [&](const LayerAnswer& answer) {
      return rows_of(answer.outputs, info.num_query_heads, 0, 64, info.value_dim);
    };
    CHECK(first(a) == first(b));
    CHECK(a.outputs != b.outputs);
  }
}
