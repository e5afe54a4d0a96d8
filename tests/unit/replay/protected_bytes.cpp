// SPDX-License-Identifier: Apache-2.0
// Tokens that the harness protects are in the bytes held, read and of the full cache; limits of a cost count them where
// they are inside the budget. 28 tokens of context, of which the first 2 and the last 3 are protected, and 12 decoded
// ones; a key and a value take 28 bytes.
#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr double token = 2 * (8 + 6), rounded = 8 + 4 + 6 + 4;  ///< bytes of a key and a value: bf16, int8

struct Protecting {
  const char* method;
  std::vector<Assignment> settings;
  const char* budget;
  bool outside;
  Index budget_tokens;
  double held;  ///< bytes of a kv head; the full cache has 40 tokens
};

ReplayRequest protecting(const Protecting& one) {
  ReplayRequest request = request_of(find_method(one.method), one.settings, 1);
  request.budgets = {Budget::parse(one.budget)};
  request.protocol = Protocol::decode;
  request.protect_first = 2, request.protect_last = 3, request.protect_outside = one.outside;
  return request;
}

}  // namespace

TEST_CASE("protected tokens are held, read and a part of the full cache") {
  const SmallTrace trace;
  const std::vector<Assignment> page = {{"page", "4"}};
  const Protecting cases[] = {
      // 12 tokens: 7 that the method chooses, 12 decoded ones, 5 protected ones.
      {"knorm", {}, "12", false, 12, (7 + 12 + 5) * token},
      {"knorm", {}, "12", true, 17, (12 + 12 + 5) * token},
      {"knorm+int8", {}, "12", false, 12, (7 + 12) * rounded + 5 * token},
      {"knorm+int8", {}, "12", true, 17, (12 + 12) * rounded + 5 * token},
      // A share of 28 tokens, or of the 23 others.
      {"knorm", {}, "50%", false, 14, (9 + 12 + 5) * token},
      {"knorm", {}, "50%", true, 17, (12 + 12 + 5) * token},
      // Half of 40 tokens are 20: 3, 12 decoded and 5 protected ones. Half of the 35 others are 17: 5 and 12 decoded
      // ones.
      {"knorm", {}, "50%mem", false, 8, 20 * token},
      {"knorm", {}, "50%mem", true, 10, (17 + 5) * token},
      {"knorm", {}, "50%fast", false, 8, 20 * token},
      {"knorm", {}, "50%read", true, 10, (17 + 5) * token},
      // 35 rounded ones and 5 whole ones.
      {"int8", {}, "90%mem", false, 28, 35 * rounded + 5 * token},
      {"int8", {}, "80%mem", true, 28, 35 * rounded + 5 * token},
      {"exact", {}, "100%mem", false, 28, 40 * token},
      {"exact", {}, "100%mem", true, 28, 40 * token},
  };
  for (const Protecting& one : cases) {
    CAPTURE(one.method);
    CAPTURE(one.budget);
    CAPTURE(one.outside);
    const ReplayResults results = replay::replay(trace.reader(), protecting(one), {.threads = 1});
    for (const HeadResult& head : results.heads) {
      const ConfigurationResult& result = head.results.front();
      CAPTURE(result.reason);
      REQUIRE(result.status == Status::ok);
      CHECK(result.budget_tokens == one.budget_tokens);
      CHECK(result.bytes.of(CostKind::memory) == one.held);
      CHECK(result.bytes.fast == one.held);
      CHECK(result.bytes.read == one.held);
      CHECK(result.bytes.full == 40 * token);
    }
  }
}

TEST_CASE("protected tokens are counted in the element type of the cache, and without decoded tokens in a prefill") {
  const SmallTrace trace;
  ReplayRequest request = protecting({.method = "knorm", .budget = "12", .outside = false});
  request.kv_element = Element::f32;
  CHECK(replay::replay(trace.reader(), request, {.threads = 1}).heads[0].results[0].bytes.of(CostKind::memory) ==
        2 * (7 + 12 + 5) * token);
  request = protecting({.method = "knorm", .budget = "50%mem", .outside = false});
  request.protocol = Protocol::prefill;
  const ReplayResults prefill = replay::replay(trace.reader(), request, {.threads = 1});
  CHECK(prefill.heads[0].results[0].bytes.of(CostKind::memory) == 14 * token);  // 9 and 5 of 28
  CHECK(prefill.heads[0].results[0].bytes.full == 28 * token);
}

TEST_CASE("what protected tokens alone cost limits a budget inside which they are") {
  const SmallTrace trace;
  const auto result = [&](const char* budget, bool outside) {
    return replay::replay(trace.reader(), protecting({.method = "knorm", .budget = budget, .outside = outside}),
                          {.threads = 1})
        .heads[0]
        .results[0];
  };
  // One token, 12 decoded and 5 protected ones are 18 of 40; one and 12 decoded ones are 13 of 35.
  CHECK(result("44%mem", false).status == Status::infeasible);
  CHECK(contains(result("44%mem", false).reason, "costs at least 45 % of the full cache, with 6 tokens"));
  CHECK(result("45%mem", false).status == Status::ok);
  CHECK(result("37%mem", true).status == Status::infeasible);
  CHECK(result("38%mem", true).status == Status::ok);
}

// 25 of 28 tokens; 20 of the 23 that are not protected outside the budget; int8 takes 22 of 28 bytes, of whatever it
// rounds: 35 of 35 tokens outside, and 35 of 40 inside, where the other 5 stay whole: (35 * 22 + 5 * 28) / (40 * 28).
TEST_CASE("the budget that a quantiser suggests in place of tokens is a share of what shares are of") {
  const SmallTrace trace;
  const auto result = [&](const std::string& budget, bool outside) {
    return replay::replay(trace.reader(), protecting({.method = "int8", .budget = budget.c_str(), .outside = outside}),
                          {.threads = 1})
        .heads[0]
        .results[0];
  };
  struct Case {
    const char* tokens;
    bool outside;
    const char* suggested;
  };
  for (const Case& one :
       {Case{"25", false, "89.3%mem"}, {"20", true, "87%mem"}, {"12", false, "82%mem"}, {"12", true, "79%mem"}}) {
    CAPTURE(one.suggested);
    const auto refused = result(one.tokens, one.outside);
    CHECK(refused.status == Status::infeasible);
    CHECK(refused.reason.ends_with(std::string("such as --budget ") + one.suggested));
    CHECK(result(one.suggested, one.outside).status == Status::ok);
  }
}
