// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::string refusal(const char* name) {
  try {
    find_method(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a composition has the parameters of both parts, and is found once") {
  const MethodInfo& both = find_method("snapkv+kivi4");
  CHECK(&both == &find_method("snapkv+kivi4"));
  CHECK(both.name == "snapkv+kivi4");
  const Params params = both.bind(std::vector<Assignment>{{"kivi4.group", "64"}, {"window", "16"}});
  CHECK(params.text() == "window=16;kivi4.group=64");
  CHECK(both.bind({}).text().empty());
  CHECK_THROWS_WITH_AS(both.bind(std::vector<Assignment>{{"group", "64"}}), doctest::Contains("write kivi4.group"),
                       Error);
  CHECK_THROWS_WITH_AS(both.bind(std::vector<Assignment>{{"grup", "64"}}), doctest::Contains("has no parameter"),
                       Error);
}

TEST_CASE("compositions that make no sense are refused, with the right order") {
  CHECK(refusal("int4+snapkv").find("write snapkv+int4") != std::string::npos);
  CHECK(refusal("snapkv+h2o").find("'h2o' does not") != std::string::npos);
  CHECK(refusal("int4+int8").find("one can") != std::string::npos);
  CHECK(refusal("exact+int8").find("'int8' alone") != std::string::npos);
  CHECK(refusal("quest+kivi4").find("holds all tokens") != std::string::npos);
  for (const char* name : {"snapkv+", "+int8", "snapkv++int8"})
    CHECK(refusal(name).find("no composition") != std::string::npos);
  CHECK(refusal("snapkv+int8+int4").find("no method") != std::string::npos);
  CHECK(refusal("adakv(snapkv)").find("no wrapper 'adakv'") != std::string::npos);
}

TEST_CASE("a quantiser of several levels stores another method only at one of them") {
  const MethodInfo& both = find_method("snapkv+int");
  CHECK_THROWS_WITH_AS(both.bind({}), doctest::Contains("6 levels"), Error);
  CHECK(both.bind(std::vector<Assignment>{{"int.bits", "3"}}).text() == "int.bits=3");
}

// Keys 0 to 5 with a step of 5 / 255: values 1, 2, 4, ... are single channels, which are exact.
TEST_CASE("a composition keeps the tokens of its method, and rounds them in the order of the cache") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({5, 1, 4, 0, 3, 2}, 5);
  const auto plain = open_cache("random", {}, prompt_of(head, *backend), 3, 7, *backend);
  const auto stored = open_cache("random+kivi2", {{"kivi2.group", "3"}, {"kivi2.residual", "3"}},
                                 prompt_of(head, *backend), 3, 7, *backend);
  const QueryBlock block = query_block(head, 5, 6, 6, *backend);
  const Ids kept = answering(*plain, block, head, *backend);
  CHECK(answering(*stored, block, head, *backend) == kept);
  // The three kept keys are one group, whose ends are exact and whose middle goes to a third of its range.
  std::vector<float> keys;
  for (const TokenId id : kept) keys.push_back(head.keys[static_cast<std::size_t>(id)]);
  const auto [low, high] = std::ranges::minmax(keys);
  const auto entries = visible_entries(head, stored->entries(block), block, *backend);
  for (const Entry& entry : entries[0]) {
    const float key = head.keys[static_cast<std::size_t>(entry.id)];
    const float got = entry.key.empty() ? key : entry.key[0];
    CHECK(std::abs(got - key) <= (high - low) / 6 + 0.01f);
    if (key == low || key == high) CHECK(std::abs(got - key) < 0.01f);
  }
  CHECK(stored->notes().back().text == "kivi2: 2 bits");
}
