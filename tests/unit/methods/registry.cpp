// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include <kvbench/methods/registry.hpp>

using namespace kvbench;

TEST_CASE("names and aliases are unique, lower case and found") {
  std::set<std::string> seen;
  for (const MethodInfo& method : all_methods()) {
    std::vector<std::string> names = method.aliases;
    names.push_back(method.name);
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(seen.insert(name).second);
      CHECK(std::ranges::all_of(name, [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-'; }));
      CHECK(&find_method(name) == &method);
    }
  }
}

TEST_CASE("every row says what it is and how to run it") {
  for (const MethodInfo& method : all_methods()) {
    CAPTURE(method.name);
    CHECK_FALSE(method.paper.empty());
    CHECK_FALSE(method.summary.empty());
    CHECK_FALSE(method.notes.empty());
    CHECK(method.bind != nullptr);
    CHECK((method.granularity == Granularity::layer ? method.prepare_layer != nullptr : method.prepare != nullptr));
    CHECK((method.granularity == Granularity::model) == (method.plan != nullptr));
    for (const ParamSpec& param : method.params) {
      CAPTURE(param.name);
      CHECK_FALSE(param.doc.empty());
      // The default that help shows is one that parsing accepts, and changes nothing.
      CHECK(method.bind(std::vector<Assignment>{{param.name, param.default_value}}).text().empty());
    }
  }
}

TEST_CASE("an unknown method is answered with the nearest name") {
  CHECK_THROWS_WITH_AS(find_method("snapvk"), doctest::Contains("snapkv"), Error);
  CHECK_THROWS_WITH_AS(find_method("xyzzy"), doctest::Contains("kvbench methods"), Error);
  CHECK(find_method("streamingllm").name == "sink");
  CHECK_THROWS_WITH_AS(find_method("snapkv").bind(std::vector<Assignment>{{"kernel", "4"}}), doctest::Contains("odd"), Error);
}
