// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/method_text.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::methods;

TEST_CASE("a method with parameters is read in any brackets, with spaces between its parts") {
  const struct {
    const char *text, *name, *settings;  // "-": no brackets
  } texts[] = {{"snapkv", "snapkv", "-"},
               {" snapkv ", "snapkv", "-"},
               {"snapkv[window=64]", "snapkv", "window=64"},
               {"snapkv [window=64]", "snapkv", "window=64"},
               {"snapkv(window=64)", "snapkv", "window=64"},
               {"snapkv (window=64, kernel=5)", "snapkv", "window=64, kernel=5"},
               {"snapkv{window=64}", "snapkv", "window=64"},
               {"snapkv[]", "snapkv", ""},
               {"snapkv()", "snapkv", ""},
               {"./m(1).py:Mine", "./m(1).py:Mine", "-"},
               {"./m(1).py:Mine(a=1)", "./m(1).py:Mine", "a=1"},
               {"./m(1).py:Mine[a=(1)]", "./m(1).py:Mine", "a=(1)"},
               {"adakv(snapkv)", "adakv(snapkv)", "-"},  // a wrapper, not parameters
               {"snapkv)", "snapkv)", "-"},
               {")", ")", "-"},
               {"", "", "-"}};
  for (const auto& [text, name, settings] : texts) {
    CAPTURE(text);
    const auto read = parse_method_text(text);
    REQUIRE(read);
    CHECK(read->name == name);
    CHECK(read->settings.value_or("-") == settings);
  }
  for (const char* text : {"snapkv[a=1", "snapkv[a=1]]", "snapkv[a=1][b=2]", "snapkv[a=1]x", "snapkv[a=1](b=2)"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_method_text(text));
  }
}

TEST_CASE("settings are names with values, each once") {
  const auto settings = parse_settings("window=64, kernel = 5;text= a b");
  REQUIRE(settings.size() == 3);
  CHECK(settings[1].name == "kernel");
  CHECK(settings[2].value == " a b");  // a text may begin with a space
  for (const char* text : {"64", "window", "=3", "window:64", "window=64,64", "window=64,window=32", "w=1, W=2"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_settings(text), Error);
  }
}
