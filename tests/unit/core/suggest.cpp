// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/name.hpp>

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

using kvbench::did_you_mean;
using kvbench::listed;
using kvbench::nearest_name;

TEST_CASE("the nearest name is suggested if it is near enough") {
  const std::string known[] = {"subgen", "snapkv", "sink"};
  CHECK(nearest_name("subgem", known) == "subgen");
  CHECK(nearest_name("snakpv", known) == "snapkv");
  CHECK(nearest_name("snik", known) == "sink");
  CHECK(nearest_name("SNAPVK", known) == "snapkv");
  CHECK(nearest_name("quest", known).empty());
  CHECK(did_you_mean("snik", known) == " Did you mean 'sink'?");
  CHECK(did_you_mean("zzz", known).empty());
  const std::string longer[] = {"turboquant", "kernel", "q8_0", "--threads"};
  for (const auto& [name, nearest] : {std::pair{"turbo", "turboquant"},
                                      {"kernel_size", "kernel"},
                                      {"Q8", "q8_0"},
                                      {"--threads-per-core", "--threads"},
                                      {"--t", ""},
                                      {"--", ""},
                                      {"q", ""},
                                      {"", ""}}) {
    CAPTURE(name);
    CHECK(nearest_name(name, longer) == nearest);
  }
}

TEST_CASE("a name that shares no more than half of its letters is not suggested") {
  const std::string known[] = {"a", "b", "--a", "int"};
  for (const char* name : {"*", "+", "x", "ab", "--x", "-", "--", ""}) {
    CAPTURE(name);
    CHECK(did_you_mean(name, known).empty());
  }
  CHECK(nearest_name("imt", known) == "int");
}

TEST_CASE("the beginning of a name suggests the names that it begins") {
  const std::string known[] = {"eval",      "validate", "q8_0",     "iq4_nl",     "q4_1",
                               "q4_0",      "int",      "int4",     "turboquant", "turboquant@vllm",
                               "--protect", "--port",   "--prompts"};
  for (const auto& [name, suggested] : {std::pair{"q4", " Did you mean 'q4_0' or 'q4_1'?"},
                                        {"Q8", " Did you mean 'q8_0'?"},
                                        {"tur", " Did you mean 'turboquant'?"},
                                        {"val", " Did you mean 'validate'?"},
                                        {"in", " Did you mean 'int'?"},
                                        {"--pr", " Did you mean '--prompts' or '--protect'?"},
                                        {"q", ""}}) {
    CAPTURE(name);
    CHECK(did_you_mean(name, known) == suggested);
  }
}

TEST_CASE("of a long list the first names are shown") {
  CHECK(listed(std::vector<std::string>{"a", "b"}) == "a, b");
  const std::string many = listed(std::vector<std::string>(25, "x"));
  CHECK(many.ends_with("x, x and 5 others"));
  CHECK(std::ranges::count(many, 'x') == 20);
}
