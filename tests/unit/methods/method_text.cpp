// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <tuple>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/methods/contract/method_text.hpp>
#include <kvbench/methods/file_name.hpp>
#include <kvbench/methods/registry.hpp>

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

TEST_CASE("the name of a method in Python is a file with a name, or py: with a name") {
  const auto file = parse_python_name("./mine.py:Mine");
  REQUIRE(file);
  CHECK(file->file == "./mine.py");
  CHECK(file->object == "Mine");
  const auto defined = parse_python_name("py:Mine");
  REQUIRE(defined);
  CHECK(defined->file.empty());
  CHECK(defined->object == "Mine");
  // The last .py: ends the path.
  const auto nested = parse_python_name("a.py:b/c+d.py:Mine");
  REQUIRE(nested);
  CHECK(nested->file == "a.py:b/c+d.py");
  CHECK(nested->object == "Mine");
  for (const char* other : {"snapkv", ".py:Mine", "mine.py", "mine.pyc:Mine", "PY:Mine"}) {
    CAPTURE(other);
    CHECK_FALSE(parse_python_name(other));
  }
}

TEST_CASE("methods in Python are an author's own, and a composition of one is a composition") {
  CHECK(family_of("./mine.py:Mine") == "own");
  CHECK(family_of("./a+b.py:Mine") == "own");
  CHECK(family_of("./a+b.py:Mine+kivi4") == "composition");
}

TEST_CASE("the file of a method in Python is an input, which no output replaces") {
  const std::filesystem::path folder = temporary_folder() / "kvbench-python-name";
  std::filesystem::create_directories(folder);
  protect_read_files();
  for (const auto& [before, file, behind] :
       {std::tuple{"", "a.py", ":Mine"}, {"", "b+c.py", ":Mine"}, {"", "d.py", ":Mine+kivi4"}}) {
    CAPTURE(file);
    const std::string path = (folder / file).string();
    std::ofstream(path) << "class Mine: pass\n";
    CHECK_NOTHROW(check_not_read(path));
    CHECK_THROWS_AS(find_method(before + path + behind), Error);  // without a Python
    CHECK_THROWS_AS(check_not_read(path), Error);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a name with control characters is no method in Python, as tables and terminals show it") {
  for (const char* name : {"a\x1b[31m.py:Mine", "a.py:Mi\nne", "py:\x07", "a\xff.py:Mine", "a\xc2\x9b.py:Mine+kivi4"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(find_method(name), doctest::Contains("choose a name"), Error);
  }
}

TEST_CASE("without a Python a method in Python is refused, also as a part of a composition") {
  CHECK_THROWS_WITH_AS(find_method("./mine.py:Mine"), doctest::Contains("'./mine.py:Mine' is written in Python"),
                       Error);
  CHECK_THROWS_WITH_AS(find_method("py:Mine+kivi4"), doctest::Contains("'py:Mine' is written in Python"), Error);
}
