// SPDX-License-Identifier: Apache-2.0
// Numbers that are finite in the trace but not in what is computed from them.
#include <kvbench/replay/exact/logit_check.hpp>

#include <limits>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/exact/head.hpp>

#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// One kv head of 4 tokens, d = 2, with a query at position 3 that sees the keys (0, 0), (0, 0), `key`, (0, 0).
class OneHead {
 public:
  OneHead(std::vector<float> query, std::vector<float> key, float value = 1) {
    trace::LayerInfo layer{.scale = 0.5, .query_positions = {3}};
    trace::PromptInfo prompt{
        .id = "p", .name = "p", .num_tokens = 4, .prompt_tokens = 2, .tokens = {1, 2, 3, 4}, .layers = {layer}};
    trace::TraceInfo info{.model = "m",
                          .num_layers = 1,
                          .num_query_heads = 1,
                          .num_kv_heads = 1,
                          .head_dim = 2,
                          .value_dim = 1,
                          .rope_type = "none",
                          .rope_layout = "half",
                          .prompts = {prompt}};
    trace::Writer writer(folder_ / "t.h5", info);
    writer.write_rows(0, 0, trace::Array::keys, 0, 0, std::vector<float>{0, 0, 0, 0, key[0], key[1], 0, 0});
    writer.write_rows(0, 0, trace::Array::values, 0, 0, std::vector<float>(4, value));
    writer.write_rows(0, 0, trace::Array::queries, 0, 0, query);
    writer.commit();
  }
  std::string refusal() const {
    const trace::Reader reader(folder_ / "t.h5");
    return message_of<Error>([&] {
      const auto results = replay::replay(reader, request_of({&find_method("exact")}, 1), serial);
      CHECK(results.heads[0].results[0].status == Status::ok);
    });
  }

 private:
  TempFolder folder_;
};

}  // namespace

TEST_CASE("logits of plus and minus infinity are refused with head, query and token") {
  for (const float sign : {1.0f, -1.0f}) {
    const std::string message = OneHead({1e20f, 0}, {sign * 1e20f, 0}).refusal();
    CHECK(contains(message,
                   "t.h5: /prompts/p/layers/0: query head 0: the logit of the query at position 3 and token 2 is "));
    CHECK(contains(message, sign > 0 ? " inf in fp32" : " -inf in fp32"));
  }
  CHECK(contains(OneHead({1e20f, 1e20f}, {1e20f, -1e20f}).refusal(),
                 "token 2 is"));  // partial sums overflow, the true value is 0
}

TEST_CASE("large numbers whose products are finite are replayed") {
  CHECK(OneHead({1e30f, 0}, {0, 1e30f}).refusal().empty());
  CHECK(OneHead({1e18f, 0}, {1e18f, 0}).refusal().empty());
}

TEST_CASE("an exact output that is not finite is refused with head and query") {
  const std::string message = OneHead({0, 0}, {0, 0}, 3e38f).refusal();
  CHECK(contains(message, "prompt 'p', layer 0, query head 0: the exact output of the query at position 3 is inf"));
}

TEST_CASE("the largest magnitude is that of the absolute values") {
  CHECK(largest_magnitude({}) == 0);
  CHECK(largest_magnitude(std::vector<float>{-0.0f, 1, -3.5f, 2}) == 3.5f);
}

TEST_CASE("an answer that is not a number fails its configurations instead of being left out of means") {
  const SmallTrace trace;
  const MethodInfo bad = answering("bad", [](const QueryBlock&, Backend& backend) {
    EntryTables tables = ids_table(backend, {0});
    tables[0].weight_num = backend.adopt(std::vector<float>{std::numeric_limits<float>::infinity()}, 1, 1);
    tables[0].weight_den = backend.adopt(std::vector<float>{std::numeric_limits<float>::infinity()}, 1, 1);
    return tables;
  });
  const ReplayResults results = replay::replay(trace.reader(), request_of({&bad}, 5), serial);
  CHECK(results.heads[0].results[0].status == Status::failed);
}
