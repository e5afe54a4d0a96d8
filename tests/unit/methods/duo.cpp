// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/methods/stages/coming_queries.hpp>
#include <kvbench/testing/contract.hpp>

#include <support/temp_folder.hpp>
#include <support/turning.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Budgets = std::vector<Index>;

std::vector<Assignment> settings_of(const TextFile& table, std::vector<Assignment> more) {
  more.push_back({"table", table.path()});
  return more;
}

const std::vector<Assignment> two = {{"sinks", "1"}, {"recent", "1"}};

/// Of two layers, a context of some tokens and heads that stream 2.
Budgets plan(const std::string& table, Index budget, Index tokens = 10) {
  const TextFile file(table);
  const MethodInfo& info = find_method("duo");
  return info.plan({.prompt_group = "", .layers = {0, 1}, .tokens = tokens}, budget, info.bind(settings_of(file, two)));
}

}  // namespace

// 4 heads of 2 tokens, whole ones with 8 more: there are 8 more at a budget of 4, 12 at 5, 16 at 6, 28 at 9. A layer
// with one whole head of two holds 2 + 8/2 tokens per head.
TEST_CASE("duo: the heads with the largest gates of all layers are whole") {
  const std::string gates = ".9\t.2\n.5\t.7\n";
  CHECK(plan(gates, 2) == Budgets{2, 2});
  CHECK(plan(gates, 4) == Budgets{6, 2});
  CHECK(plan(gates, 5) == Budgets{6, 2});
  CHECK(plan(gates, 6) == Budgets{6, 6});
  CHECK(plan(gates, 9) == Budgets{6, 10});
  CHECK(plan(gates, 12) == Budgets{10, 10});
  CHECK(plan(gates, 5, 11) == Budgets{7, 2});           // (11 + 2) / 2 tokens per head, rounded up
  CHECK(plan("-1\t-2\n0\t-3\n", 6) == Budgets{10, 2});  // all are clipped to 0, and the lower layer comes first
  CHECK(plan("1\t2\n3\t1\n", 4) == Budgets{6, 2});      // to 1
  CHECK_THROWS_WITH_AS(plan(gates, 1),
                       "duo: every head keeps 2 tokens, and the budget is 1 per head; choose at least 2, or lower "
                       "duo.sinks and duo.recent",
                       Infeasible);
}

// One head of two streams 1 + 2 of 6 tokens; then 3 tokens are decoded.
TEST_CASE("duo: windows slide over decoded tokens, those of duo@kvpress grow") {
  const HeadData head = small_head(std::vector<float>(9, 0), 6);
  const auto answers = [&](const std::string& method, std::vector<Assignment> settings, std::size_t which) {
    std::vector<HeadPrompt> heads;
    for (std::int64_t h = 0; h < 2; ++h) {
      heads.push_back(prompt_of(head, ref()));
      heads.back().head = KvHeadId(h), heads.back().layer = LayerId(0), heads.back().num_kv_heads = 2;
      HeadData text = turning_head({1, 0, 1, 0}, {1, 0, 1, 0}, 2);
      if (h == 0) text.scale = -1;  // attends to what is early
      heads.back().calibration = std::make_shared<const HeadPrompt>(prompt_of(text, ref()));
    }
    settings.insert(settings.end(), {{"sinks", "1"}, {"recent", "2"}});
    const MethodInfo& info = find_method(method);
    const Caches caches = info.prepare(heads, info.bind(settings), ref())(5, 0);
    for (Index t = 6; t < 9;) t += append(*caches[which], token_block(head, t, 9, ref()));
    return answering(*caches[which], query_block(head, 8, 9, 9, ref()), head);
  };
  const TextFile table("1\t0\n0\t0\n0\t0\n0\t0\n");
  CHECK(answers("duo", {{"table", table.path()}}, 0) == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(answers("duo", {{"table", table.path()}}, 1) == Ids{0, 7, 8});
  CHECK(answers("duo@kvpress", {{"positions", "2"}}, 0) == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(answers("duo@kvpress", {{"positions", "2"}}, 1) == Ids{0, 4, 5, 6, 7, 8});
}

// Mean key and query are (1, 0) before RoPE, which turns by a radian for each position: at position 1 the query has the
// logits cos 1 and 1, and the first position the weight w = 1 / (1 + e^(1 - cos 1)) = 0.38705. The attention up to the
// two positions is w and 1. Against the direction of the key w = 1 / (1 + e^(cos 1 - 1)) = 0.61295.
TEST_CASE("duo@kvpress: how early the last of a row of mean queries attends") {
  const auto of = [&](std::vector<float> queries, Index positions) {
    // Keys (1.5, 1) and (.5, -1), turned to their positions.
    const double c = std::cos(1.0), s = std::sin(1.0);
    const HeadData text =
        turning_head({1.5f, 1, static_cast<float>(.5 * c + s), static_cast<float>(.5 * s - c)}, std::move(queries), 2);
    return early_attention(prompt_of(text, ref()), "duo@kvpress", positions, ref());
  };
  CHECK(of({1, 3, 1, -3}, 2) == doctest::Approx((0.38705 + 1) / 2).epsilon(1e-5));
  CHECK(of({-1, 0, -1, 0}, 2) == doctest::Approx((0.61295 + 1) / 2).epsilon(1e-5));
  CHECK(of({0, 0, 0, 0}, 4) == doctest::Approx((1 + 2 + 3 + 4) / 16.0));  // all alike
  CHECK(of({1, 3, 1, -3}, 1) == 1);
}

TEST_CASE("duo and duo@kvpress hold the contract of methods") {
  const TextFile table("0.2\t0.9\t0.1\n0.3\t0.8\t0.7\n0.4\t0\t0.5\n1\t1\t1\n");
  const std::vector<Assignment> window = {{"sinks", "2"}, {"recent", "4"}};
  const MethodInfo &duo = find_method("duo"), &kvpress = find_method("duo@kvpress"), &stored = find_method("duo+int8");
  const std::vector<Finding> without_table = test_contract({&duo, duo.bind({})}, ref());
  CHECK(without_table.size() == 1);
  CHECK(without_table[0].compliance == Compliance::refused);
  const auto of_stored = std::vector<Assignment>{{"sinks", "2"}, {"recent", "4"}, {"table", table.path()}};
  for (const Row& row : {Row{&duo, duo.bind(settings_of(table, window))}, Row{&kvpress, kvpress.bind(window)},
                         Row{&stored, stored.bind(of_stored)}}) {
    CAPTURE(row.info->name);
    for (const Finding& finding : test_contract(row, ref())) {
      CAPTURE(describe(finding));
      CHECK(finding.compliance != Compliance::broken);
    }
  }
}

TEST_CASE("duo: a table has a line for each layer and a number for each kv head") {
  HeadPrompt head = prompt_of(random_head({}, 1, ref()), ref());
  head.num_kv_heads = 1;
  const auto reject = [&](const std::string& text, const std::string& fault) {
    const TextFile file(text);
    const MethodInfo& info = find_method("duo");
    CHECK_THROWS_WITH_AS(info.prepare({&head, 1}, info.bind(settings_of(file, {})), ref()),
                         doctest::Contains((file.path() + fault).c_str()), Error);
  };
  reject("0.5\tnan\n", ":1: a line has finite numbers between blanks, one for each kv head");
  reject("0.5\t1\n1\tinf\n", ":2: ");
  reject("0.5,1\n", ":1: ");
  reject("0.5\t1\n1\n", ":2: a line has finite numbers");
  reject("1\n\n1\n", ":2: ");
  reject("", " is empty");
  reject("1\n1\n1\n", ": it has 3 lines of 1 numbers, and the model 4 layers of 1 kv heads");
  CHECK_THROWS_WITH_AS(find_method("duo").bind(std::vector<Assignment>{{"table", "/nonexistent/gates.tsv"}}),
                       doctest::Contains("/nonexistent/gates.tsv"), Error);
}

TEST_CASE("duo needs a table, duo@kvpress another text with queries, and both all heads of a layer") {
  HeadPrompt head = prompt_of(random_head({}, 1, ref()), ref());
  const auto lacks = [&](const std::string& method, const std::vector<Assignment>& settings, const char* fault) {
    const MethodInfo& info = find_method(method);
    CHECK_THROWS_WITH_AS(info.prepare({&head, 1}, info.bind(settings), ref()), doctest::Contains(fault), Unavailable);
  };
  lacks("duo", {}, "name it with duo.table=FILE");
  lacks("duo@kvpress", {}, "name one with --calibrate");
  HeadData text = random_head({}, 2, ref());
  head.calibration = std::make_shared<const HeadPrompt>(prompt_of(text, ref()));
  lacks("duo@kvpress", {}, "omit --heads");
  text.lacks = {Part::observed_queries};
  head.calibration = std::make_shared<const HeadPrompt>(prompt_of(text, ref()));
  lacks("duo@kvpress", {}, "duo@kvpress needs queries");
  text.lacks = {}, text.rope.reset();
  head.calibration = std::make_shared<const HeadPrompt>(prompt_of(text, ref()));
  lacks("duo@kvpress", {}, "unscaled RoPE");
}
