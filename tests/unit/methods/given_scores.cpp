// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <kvbench/testing/contract.hpp>

#include <support/scored_layer.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Budgets = std::vector<Index>;

/// Scores of layers 0 and 3 of prompt "a", two heads of 4 tokens.
MethodInfo two_layers() {
  return given_scores_method("scores:s.h5", {"s.h5",
                                             "",
                                             {{"a",
                                               {{0, {2, 4, {9, 8, 7, 6, 5, 0, 0, 0}}},  // 5 of the best 8
                                                {3, {2, 4, {4, 3, 2, 0, 1, 0, 0, 0}}}}}}});
}

Budgets plan(Index budget, std::vector<Assignment> settings = {}, Index tokens = 4) {
  const MethodInfo info = two_layers();
  settings.push_back({"scope", "model"});
  return info.plan({"a", {0, 1, 3}, tokens}, budget, info.bind(settings));
}

template <class F>
std::string reason_of(F call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tokens compete within their head or within their layer") {
  const ScoredLayer layer({{9, 8, 7, 6, 1, 0}, {5, 4, 3, 2, 0.5, 0.4f}});
  const MethodInfo info = layer.method();
  CHECK(layer.kept(info, {}, 3) == std::vector<Ids>{{0, 1, 2}, {0, 1, 2}});
  CHECK(layer.kept(info, {{"scope", "layer"}}, 3) == std::vector<Ids>{{0, 1, 2, 3}, {0, 1}});
  CHECK(layer.kept(info, {{"scope", "layer"}}, 2) == std::vector<Ids>{{0, 1, 2, 3}, {}});
  CHECK(layer.kept(info, {{"scope", "layer"}, {"sinks", "1"}, {"recent", "1"}}, 3) ==
        std::vector<Ids>{{0, 1, 2, 5}, {0, 5}});
  CHECK(layer.kept(info, {{"scope", "model"}}, 3) == layer.kept(info, {{"scope", "layer"}}, 3));  // within a layer
  CHECK_FALSE(info.divides(info.bind(std::vector<Assignment>{{"scope", "layer"}})));
  CHECK(info.independent_heads(info.bind({})));
  CHECK_FALSE(info.independent_heads(info.bind(std::vector<Assignment>{{"scope", "layer"}})));
}

// Layer 1 is not in the file. At 2 tokens per head the best 8 of 16 are 9 8 7 6 5 and 4 3 2: 2.5 and 1.5 per head; the
// next token of layer 0 after 4 is 5, that of layer 3 after 2 is 2. At 1 token the best 4 are of layer 0, and the other
// has one per head at least. At 3 tokens the best 12 are 9 to 1 and three of the 0, which lie in layer 0 first.
TEST_CASE("scope=model divides the budget among layers, and their mean is the budget") {
  CHECK(plan(2) == Budgets{3, 2, 1});
  CHECK(plan(1) == Budgets{1, 1, 1});
  CHECK(plan(4) == Budgets{4, 4, 4});
  CHECK(plan(7) == Budgets{4, 4, 4});
  CHECK(plan(3) == Budgets{4, 3, 2});
  CHECK(plan(2, {{"sinks", "1"}}) == Budgets{3, 2, 1});  // the best 4 of tokens 1 .. 3: 8 7 6 and 3, 1.5 and 0.5
  const MethodInfo info = two_layers();
  CHECK(info.divides(info.bind(std::vector<Assignment>{{"scope", "model"}})));
}

TEST_CASE("scores that a file lacks are missed, and scores of another shape are an error") {
  const MethodInfo info = two_layers();
  const auto reason = [&](const char* group, std::int64_t layer, Index heads, Index tokens) {
    HeadPrompt head = prompt_of(small_head(std::vector<float>(static_cast<std::size_t>(tokens + 1), 0), tokens), ref());
    head.prompt_group = group, head.layer = LayerId(layer), head.num_kv_heads = heads;
    return reason_of([&] { info.prepare({&head, 1}, info.bind({}), ref()); });
  };
  CHECK(reason("a", 3, 2, 4).empty());
  CHECK(reason("b", 3, 2, 4).find("s.h5 has no scores of prompt 'b'") == 0);
  CHECK(reason("a", 1, 2, 4).find("s.h5 has no scores of layer 1 of prompt 'a'") == 0);
  CHECK(reason("a", 3, 2, 5).find("s.h5 has scores of the first 4 tokens") == 0);
  CHECK(reason("a", 3, 3, 4).find("s.h5: /prompts/a/3 has scores of 2 kv heads, and the layer has 3") == 0);
  CHECK(reason("a", 3, 2, 3).empty());  // the first 3 of 4
}

TEST_CASE("the scores of a file hold the contract of methods at every scope") {
  std::map<std::int64_t, LayerScores> layers;
  for (std::int64_t layer = 0; layer < 4; ++layer) layers[layer] = {3, 480, random_numbers(3 * 480, 5, 1)};
  const MethodInfo info = given_scores_method("scores:s.h5", {"s.h5", "", {{"", layers}}});
  for (const char* scope : {"head", "layer", "model"}) {
    const Row row{&info, info.bind(std::vector<Assignment>{{"scope", scope}})};
    for (const Finding& finding : test_contract(row, ref())) {
      CAPTURE(describe(finding));
      CHECK(finding.compliance != Compliance::broken);
    }
  }
}
