// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/plan/plan.hpp>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/plan/needs.hpp>
#include <support/fakes.hpp>
#include <support/growth.hpp>
#include <support/messages.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// Prompts "a" of 1000 tokens and "b" of 600, `decoded` of them after the context; layers 0 and 5; queries at the last
/// 300.
trace::TraceInfo trace_of(std::int64_t decoded) {
  trace::TraceInfo info;
  info.num_layers = 8;
  info.num_query_heads = 4;
  info.num_kv_heads = 2;
  info.head_dim = info.value_dim = 4;
  for (const auto& [id, tokens] : {std::pair{"a", 1000}, std::pair{"b", 600}}) {
    trace::PromptInfo prompt;
    prompt.id = id;
    prompt.num_tokens = tokens;
    prompt.prompt_tokens = tokens - decoded;
    for (const int layer : {0, 5}) {
      prompt.layers.emplace_back();
      prompt.layers.back().layer = layer;
      for (std::int64_t p = tokens - 300; p < tokens; ++p) prompt.layers.back().query_positions.push_back(p);
    }
    info.prompts.push_back(prompt);
  }
  return info;
}

struct Requests {
  MethodInfo head_method = testing::fake_two_sets(), layer_method = testing::fake_shared_layer();
  ReplayRequest request{.methods = {{.info = &head_method}}};
};

std::string refusal(const trace::TraceInfo& trace, const ReplayRequest& request) {
  return message_of<Error>([&] { make_plan(trace, request); });
}

}  // namespace

TEST_CASE("the protocol follows the trace") {
  Requests r;
  CHECK(make_plan(trace_of(40), r.request).prompts[0].protocol == Protocol::decode);
  CHECK(make_plan(trace_of(40), r.request).prompts[0].context == 960);
  CHECK(make_plan(trace_of(0), r.request).prompts[0].protocol == Protocol::prefill);
  CHECK(make_plan(trace_of(0), r.request).prompts[0].context == 1000 - 256);
  r.request.protocol = Protocol::prefill;
  CHECK(make_plan(trace_of(40), r.request).prompts[1].context == 560);  // the window is the decoded part
  r.request.window = 100;
  CHECK(make_plan(trace_of(40), r.request).prompts[1].context == 500);
  r.request.protocol = Protocol::decode;
  CHECK(contains(refusal(trace_of(0), r.request), "set `protocol` to prefill"));
}

TEST_CASE("in a short prompt the default window is half of it") {
  Requests r;
  trace::TraceInfo trace = trace_of(0);
  trace.prompts.resize(1);
  trace.prompts[0].num_tokens = trace.prompts[0].prompt_tokens = 301;
  for (auto& layer : trace.prompts[0].layers) layer.query_positions = {200, 300};
  CHECK(make_plan(trace, r.request).prompts[0].context == 151);
}

TEST_CASE("budgets are tokens or shares, of the context or of its middle") {
  const PromptPlan prompt{.tokens = 1000, .context = 800, .base = 800, .protect_first = 10, .protect_last = 90};
  CHECK(budget_tokens(prompt, Budget::parse("25%"), false) == 200);
  CHECK(budget_tokens(prompt, Budget::parse("25%"), true) == 700 / 4 + 100);
  CHECK(budget_tokens(prompt, Budget::parse("64"), false) == 64);
  CHECK(budget_tokens(prompt, Budget::parse("64"), true) == 164);
  Requests r;
  r.request.budgets = {Budget::parse("960")};  // the whole context
  CHECK(refusal(trace_of(40), r.request).empty());
}

TEST_CASE("work items are kv heads, and layers for methods that see the layer") {
  Requests r;
  r.request.methods.push_back({.info = &r.layer_method});
  r.request.layers = {5};
  const ReplayPlan plan = make_plan(trace_of(40), r.request);
  REQUIRE(plan.heads.size() == 4);
  REQUIRE(plan.work_items.size() == 6);  // per prompt: two heads and their layer
  CHECK(plan.heads[1] == HeadPlace{0, 1, 1});
  CHECK(plan.heads[2] == HeadPlace{1, 1, 0});
  CHECK(plan.work_items[2].layer_methods);
  CHECK(plan.work_items[2].kv_heads == std::vector<Index>{0, 1});
  CHECK(plan.work_items[5].first_result == 2);
  r.request.kv_heads = {1};
  CHECK(make_plan(trace_of(40), r.request).heads.size() == 2);
}

TEST_CASE("configurations are methods x budgets x seeds, where methods without randomness have one seed") {
  Requests r;
  MethodInfo seeded = testing::fake_two_sets();
  seeded.seeded = true;
  r.request.methods.push_back({.info = &seeded});
  r.request.budgets = {Budget::parse("10"), Budget::parse("20")};
  r.request.seeds = {4, 7, 9};
  const ReplayPlan plan = make_plan(trace_of(40), r.request);
  REQUIRE(plan.configurations.size() == 2 + 6);
  CHECK(plan.configurations[1].budget == 1);
  CHECK(plan.configurations[4].method == 1);
  CHECK(plan.configurations[4].budget == 0);
  CHECK(plan.configurations[4].seed == 9);
  seeded.draws = [](const Params&) { return false; };  // with these parameters
  const ReplayPlan once = make_plan(trace_of(40), r.request);
  REQUIRE(once.configurations.size() == 2 + 2);
  CHECK(once.configurations[2].seed == 0);
}

TEST_CASE("a few tokens where a share may have been meant give a hint") {
  Requests r;
  const auto hints = [&](const char* budget) {
    r.request.budgets = {Budget::parse(budget)};
    return budget_hints(make_plan(trace_of(40), r.request), r.request);
  };
  CHECK(hints("25") == std::vector<std::string>{"`budgets`: 25 means 25 tokens of 560; write 25% for a share"});
  CHECK(hints("27").size() == 1);
  for (const char* clear : {"28", "2.5%", "512B", "25%mem"}) CHECK(hints(clear).empty());  // 28 = 5 % of 560
  r.request.prompts = {"a"};
  CHECK(hints("47").size() == 1);
}

TEST_CASE("a stream starts with an empty context and evaluates every recorded query") {
  Requests r;
  r.request.protocol = Protocol::stream;
  const ReplayPlan plan = make_plan(trace_of(40), r.request);
  CHECK(plan.prompts[0].context == 0);
  CHECK(plan.prompts[0].appends());
  CHECK(budget_tokens(plan.prompts[0], Budget::parse("25%"), false) == 240);  // of the 960 tokens of the prompt
}

TEST_CASE("a layer without queries after the context is an error") {
  Requests r;
  trace::TraceInfo trace = trace_of(40);
  trace.prompts[1].layers[1].query_positions = {10, 559};
  const std::string sentence = refusal(trace, r.request);
  CHECK(contains(sentence, "layer 5 of prompt 'b'"));
  CHECK(contains(sentence, "--queries"));
  r.request.prompts = {"a"};
  CHECK(refusal(trace, r.request).empty());
}

TEST_CASE("the methods that a prompt has the data for are found in a time linear in the number of prompts") {
  trace::TraceInfo two = trace_of(40);
  two.prompts[1].layers[0].query_positions.clear();
  const auto methods = runnable_methods(two);
  REQUIRE(methods.size() == 2);
  CHECK(methods[0].error.empty());
  CHECK(std::ranges::count(methods[0].can, "snapkv") == 1);
  CHECK(std::ranges::count(methods[0].cannot, "h2o") == 1);  // needs column sums
  CHECK(contains(methods[1].error, "layer 0 of prompt 'b' has no query"));
  const trace::TraceInfo one = trace_of(40);
  CHECK(testing::grows_linearly(
      [&](int count) {
        trace::TraceInfo many = one;
        for (int i = 2; i < count; ++i) {
          many.prompts.push_back(one.prompts[1]);
          many.prompts.back().id = std::to_string(i);
          for (trace::LayerInfo& layer : many.prompts.back().layers) layer.query_positions = {599};
        }
        CHECK(std::ssize(runnable_methods(many)) == count);
      },
      200));
}

TEST_CASE("layers with a sliding window or a softcap count neither in budgets nor for methods that can run") {
  Requests r;
  trace::TraceInfo trace = trace_of(40);
  trace.prompts[0].layers[0].window = 512;
  trace.prompts[1].layers[1].softcap = 50;
  const ReplayPlan plan = make_plan(trace, r.request);
  CHECK(plan.prompts[0].layers == std::vector<std::int64_t>{5});
  CHECK(plan.prompts[1].layers == std::vector<std::int64_t>{0});
  const auto some = runnable_methods(trace);
  CHECK(std::ranges::count(some[0].can, "snapkv") == 1);
  CHECK(std::ranges::count(some[0].can, "int4") == 1);
  trace.prompts[0].layers[1].window = 512;
  CHECK(contains(runnable_methods(trace)[0].error, "every layer has a sliding window"));
  const MethodChoice h2o = {&find_method("h2o"), find_method("h2o").bind({})};
  CHECK(contains(
      message_of<Unavailable>([&] { check_available(h2o, trace.prompts[0].layers[0], plan.prompts[0], true); }),
      "layer 0 has a sliding window of 512 tokens, which bounds its cache"));
  const MethodChoice int4 = {&find_method("int4"), find_method("int4").bind({})};  // which drops no token
  CHECK_NOTHROW(check_available(int4, trace.prompts[0].layers[0], plan.prompts[0], true));
}
