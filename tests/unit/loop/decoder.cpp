// SPDX-License-Identifier: Apache-2.0
// A decoder gives what the loop gives for tokens that are all known, however the tokens come.
#include <kvbench/loop/decoder.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/loop/layer_loop.hpp>

#include <unit/loop/layers.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

/// The arrays of a token alone.
Layer token_of(const Layer& layer, const trace::TraceInfo& info, Index t) {
  const Index queries = std::ssize(info.prompts[0].layers[0].query_positions);
  Layer token = layer;
  token.keys = rows_of(layer.keys, info.num_kv_heads, t, 1, info.head_dim);
  token.values = rows_of(layer.values, info.num_kv_heads, t, 1, info.value_dim);
  const Index q = queries - (context + scored) + t;
  token.queries = rows_of(layer.queries, info.num_query_heads, q, 1, info.head_dim);
  token.speculated.clear();
  token.column_sums.clear();
  return token;
}

}  // namespace

TEST_CASE("the decoder gives the outputs and bytes of the loop, for every method and kind of budget") {
  const SmallTrace trace(loop_options());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layers[] = {Layer(trace.reader(), 0), Layer(trace.reader(), 1)};
  Index ran = 0;
  for (const char* budget : {"30%", "40%mem"}) {
    LayerLoop loop(info, {}, serial);
    for (const LoopConfiguration& c : configurations(budget)) {
      if (looks_ahead(c)) continue;
      CAPTURE(c.method.info->name);
      CAPTURE(c.method.params.text());
      loop.start(c);
      Decoder decoder(info, {}, serial, c);
      Bytes expected;
      double budget_tokens = 0, kept_tokens = 0;
      bool all = true;
      for (std::size_t l = 0; l < 2; ++l) {
        const LayerAnswer answer = loop.answer(l, layers[l].arrays());
        if (answer.status != Status::ok && answer.reason.find("not finite") != std::string::npos) all = false;
        if (!all) break;
        if (answer.status != Status::ok) {
          CHECK_THROWS_WITH_AS(decoder.begin(l, layers[l].arrays()), doctest::Contains(answer.reason.c_str()), Error);
          all = false;
          break;
        }
        check_close(decoder.begin(l, layers[l].arrays()), answer.outputs);
        for (const ConfigurationResult& head : answer.heads) {
          expected += head.bytes;
          budget_tokens += static_cast<double>(head.budget_tokens), kept_tokens += head.kept_tokens;
        }
        ++ran;
      }
      if (!all) continue;
      CHECK(decoder.bytes().kv == doctest::Approx(expected.kv));
      CHECK(decoder.bytes().meta == doctest::Approx(expected.meta));
      CHECK(decoder.bytes().full == doctest::Approx(expected.full));
      const double heads = 2.0 * static_cast<double>(info.num_kv_heads);
      CHECK(decoder.tokens().budget == doctest::Approx(budget_tokens / heads));
      CHECK(decoder.tokens().kept == doctest::Approx(kept_tokens / heads));
    }
  }
  CHECK(ran > 60);
}

TEST_CASE("tokens that come one at a time give the outputs of tokens that are known") {
  const SmallTrace trace(loop_options());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layer(trace.reader(), 0);
  const Index dv = info.value_dim, heads = info.num_query_heads;
  Index ran = 0;
  for (const LoopConfiguration& c : configurations("30%")) {
    if (looks_ahead(c)) continue;
    CAPTURE(c.method.info->name);
    CAPTURE(c.method.params.text());
    Decoder whole(info, {}, serial, c), single(shortened(info, context + 1), {}, serial, c);
    std::vector<float> batch;
    try {
      batch = whole.begin(0, layer.arrays());
    } catch (const Error&) {
      continue;
    }
    for (Index i = 0; i < scored; ++i) {
      const std::vector<float> got = i == 0 ? single.begin(0, shortened(layer, info, context + 1).arrays())
                                            : single.answer(0, 1, token_of(layer, info, context + i).arrays());
      check_close(got, rows_of(batch, heads, i, 1, dv));
    }
    CHECK(single.bytes().full == whole.bytes().full);
    ++ran;
  }
  CHECK(ran > 40);
}

TEST_CASE("tokens of other shapes, and a layer without a context, are refused") {
  const SmallTrace trace(loop_options());
  const trace::TraceInfo& info = trace.reader().info();
  const Layer layer(trace.reader(), 0);
  Decoder decoder(info, {}, serial, configurations("30%").front());
  Layer token = token_of(layer, info, context);
  CHECK_THROWS_WITH_AS(decoder.answer(0, 1, token.arrays()), doctest::Contains("no context"), Error);
  decoder.begin(0, layer.arrays());
  token.queries.pop_back();
  CHECK_THROWS_WITH_AS(decoder.answer(0, 1, token.arrays()), doctest::Contains("`queries`"), Error);
}
