// SPDX-License-Identifier: Apache-2.0
// The unit of the scores that methods state. A wrapper adds a constant to them (criticalkv), or lets heads compete by
// them (adakv), so that a factor between a method and its release is another rule. Expected are numbers from the rules
// of kvpress 0.5.5, worked out for a head whose keys are all zero or a few whole numbers.
#include <functional>
#include <map>
#include <numeric>

#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// The scores [1, c] that a method states of the only kv head of a layer.
std::vector<float> scores_of(const std::string& method, const std::vector<Assignment>& settings, const HeadData& head) {
  const MethodInfo& info = find_method(method);
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.num_kv_heads = 1;
  return ref().read(info.scores({&prompt, 1}, info.bind(settings), ref()).front().scores);
}

double sum(const std::vector<float>& numbers, std::size_t begin = 0) {
  return std::accumulate(numbers.begin() + static_cast<std::ptrdiff_t>(begin), numbers.end(), 0.0);
}

/// Two query heads, 8 tokens of context with these keys.
HeadData head_of(std::vector<float> keys) {
  keys.push_back(0);
  return small_head(std::move(keys), 8, 2);
}
const HeadData& equal_keys() {
  static const HeadData head = head_of(std::vector<float>(8, 0));
  return head;
}

using Check = std::function<void()>;

/// With equal keys the queries at the positions 6 and 7 give 1/7 and 1/8 to every token that they see: the mean.
void check_votes(const std::string& method) {
  for (const char* pooling : {"none", "max"}) {
    const auto scores = scores_of(method, {{"window", "2"}, {"kernel", "3"}, {"pooling", pooling}}, equal_keys());
    REQUIRE(scores.size() == 6);
    for (const float score : scores) CHECK(score == Approx((1.0 / 7 + 1.0 / 8) / 2));
  }
}

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> table = {
      {"snapkv", [] { check_votes("snapkv"); }},
      {"snapkv@kvpress", [] { check_votes("snapkv@kvpress"); }},
      {"pyramidkv", [] { check_votes("pyramidkv"); }},
      // The last query alone gives 1/8 to each, as the mean over the query heads.
      {"tova@kvpress",
       [] {
         for (const float score : scores_of("tova@kvpress", {}, equal_keys())) CHECK(score == Approx(1.0 / 8));
       }},
      {"knorm",
       [] {
         const auto scores = scores_of("knorm", {}, head_of({1, -2, 3, 4, -5, 6, 7, 8}));
         CHECK(scores == std::vector<float>{-1, -2, -3, -4, -5, -6, -7, -8});
       }},
      // Six directions up and two down: the anchor points up.
      {"keydiff",
       [] {
         const auto scores = scores_of("keydiff", {}, head_of({1, -2, 3, 4, -5, 6, 7, 8}));
         CHECK(scores == std::vector<float>{-1, 1, -1, -1, 1, -1, -1, -1});
       }},
      // Equal keys of length 1, values 2^j: in blocks of 2 key shares are 1/2, and value shares 1/5 and 4/5. All
      // divided by their sum over the head, that of four blocks.
      {"curdkv",
       [] {
         const HeadData head = head_of(std::vector<float>(8, 1));
         for (const auto& [leverage, low, high] :
              {std::tuple("product", 0.1, 0.4), {"mean", 0.7, 1.3}, {"key", 0.5, 0.5}, {"value", 0.2, 0.8}}) {
           CAPTURE(leverage);
           const auto scores = scores_of("curdkv", {{"window", "2"}, {"leverage", leverage}}, head);
           for (std::size_t t = 0; t < 8; ++t)
             CHECK(scores[t] == Approx((t % 2 == 0 ? low : high) / (4 * (low + high))));
         }
       }},
      // Ranks within parts of 2 tokens behind a sink, divided by 2: 0 and 1/2.
      {"lagkv@kvpress",
       [] {
         const auto parts =
             scores_of("lagkv@kvpress", {{"sinks", "1"}, {"lag", "2"}}, head_of({9, 1, 2, 0, 4, 1, 0, 5}));
         REQUIRE(parts.size() == 5);  // two parts with another one behind them
         CHECK(parts[1] + parts[2] == 0.5f);
         CHECK(parts[3] + parts[4] == 0.5f);
         // Too short for two parts: places behind the sinks, as shares.
         const auto places = scores_of("lagkv@kvpress", {{"sinks", "4"}, {"lag", "4"}}, equal_keys());
         CHECK(places == std::vector<float>{0, 0, 0, 0, 0, 0.25f, 0.5f, 0.75f});
       }},
      // Expected weights are a softmax over the tokens behind the sinks, the mean over the query heads; values have the
      // sizes 2^j.
      {"expected-attention",
       [] {
         const HeadData head = random_head({.n = 20, .decoded = 1}, 7, ref());
         const auto scores = scores_of("expected-attention", {{"sinks", "3"}, {"future", "4"}}, head);
         double weights = 0;
         for (std::size_t t = 3; t < 20; ++t) {
           double norm2 = 0;
           for (std::size_t c = 0; c < 6; ++c) norm2 += std::pow(static_cast<double>(head.values[t * 6 + c]), 2);
           weights += static_cast<double>(scores[t]) / std::sqrt(norm2);
         }
         CHECK(weights == Approx(1).epsilon(1e-5));
       }},
      // z-scores over the tokens, of a single query head.
      {"triattention",
       [] {
         HeadData head = random_head({.n = 20, .decoded = 1, .group = 1}, 7, ref());
         const auto scores = scores_of("triattention", {{"reach", "4"}}, head);
         double squares = 0;
         for (const float score : scores) squares += static_cast<double>(score) * static_cast<double>(score);
         CHECK(sum(scores) == Approx(0).epsilon(1e-4));
         CHECK(squares / 20 == Approx(1).epsilon(1e-3));
       }},
  };
  return table;
}

}  // namespace

TEST_CASE("the scores of every method that states some have the unit of their release") {
  for (const MethodInfo& info : all_methods()) {
    if (!info.scores) continue;
    CAPTURE(info.name);
    REQUIRE_MESSAGE(checks().contains(info.name), "a new method with scores needs their unit here: wrappers meet it");
    checks().at(info.name)();
  }
}

// Keys that are all zero, values 1, 2, ..., 128; the mean of 1/7 and 1/8 is 0.134, so that a constant of 0.134 doubles
// the product of each token. Two query heads with the outputs |v| and 3 |v|: norms 2, 4, ..., 256.
TEST_CASE("epsilon of criticalkv is added to the mean over the window, as in the releases") {
  HeadData head = head_of(std::vector<float>(8, 0));
  // Tokens 0 and 5 differ: the votes of token 0 are larger by e, its norm smaller by a quarter.
  head.keys[0] = std::log(2.0f);
  head.values = {3, 1, 1, 1, 1, 4, 1, 1, 1};
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.num_kv_heads = 1;
  prompt.output_sketch = ref().adopt(std::vector<float>{1, -3}, 2, 1);
  const MethodInfo& info = find_method("criticalkv(snapkv)");
  // Queries at 6 and 7 give token 0 2/8 and 2/9, token 5 1/8 and 1/9: means 0.2361 and 0.1181. With epsilon e the
  // products are 6 (0.2361 + e) and 8 (0.1181 + e), equal where 2 e = 0.4722: e = 0.2361.
  const auto second = [&](const char* epsilon) {
    const auto cache = info.prepare_head(
        prompt,
        info.bind(std::vector<Assignment>{{"window", "2"}, {"pooling", "none"}, {"first", "0"}, {"epsilon", epsilon}}),
        ref())(3, 0);
    return answering(*cache, query_block(head, 8, 9, 9, ref()), head);
  };
  CHECK(second("0.235") == Ids{0, 6, 7});
  CHECK(second("0.237") == Ids{5, 6, 7});
}
