// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <tuple>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/methods/contract/method_name.hpp>
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
               {"adakv( )", "adakv", " "},
               {"./m(1).py:Mine", "./m(1).py:Mine", "-"},
               {"./m(1).py:Mine(a=1)", "./m(1).py:Mine", "a=1"},
               {"./m(1).py:Mine[a=(1)]", "./m(1).py:Mine", "a=(1)"},
               {"adakv( snapkv ) + int8 [alpha=0]", "adakv(snapkv)+int8", "alpha=0"},
               {"adakv(snapkv)", "adakv(snapkv)", "-"},  // a wrapper, not parameters
               {"plan:a+b(1).toml[sha256=12]", "plan:a+b(1).toml", "sha256=12"},
               {"snapkv)", "snapkv)", "-"},
               {"snapkv]", "snapkv]", "-"},
               {")", ")", "-"},
               {"", "", "-"}};
  for (const auto& [text, name, settings] : texts) {
    CAPTURE(text);
    const auto read = parse_method_text(text);
    REQUIRE(read);
    CHECK(read->name() == name);
    CHECK(read->settings.value_or("-") == settings);
    CHECK(read->text() == (read->settings ? std::string(name) + "[" + settings + "]" : name));
  }
  for (const char* text : {"snapkv[a=1", "snapkv[a=1]]", "snapkv[a=1][b=2]", "snapkv[a=1]x", "snapkv[a=1](b=2)",
                           "snapkv](a=1)", "snapkv(a=])", "snapkv(a=1))"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_method_text(text));
  }
}

TEST_CASE("a name has a base of kvbench, a plan, scores or Python, in a wrapper and before a quantiser") {
  const char* const none = nullptr;
  const struct {
    const char *name, *wrapper, *base, *quantiser;
    Origin origin = Origin::kvbench;
    const char *file = "", *object = "";
  } names[] = {
      {"snapkv", "", "snapkv", none},
      {"turboquant@vllm", "", "turboquant@vllm", none},
      {"snapkv+q5_1", "", "snapkv", "q5_1"},
      {"adakv(snapkv)", "adakv", "snapkv", none},
      {"AdaKV@kvpress(snapkv)+int8", "AdaKV@kvpress", "snapkv", "int8"},
      {"adakv(adakv(snapkv))", "adakv", "adakv(snapkv)", none},
      {"adakv(snapkv+int8)", "adakv", "snapkv+int8", none},
      {"plan:p.toml", "", "plan:p.toml", none, Origin::plan, "p.toml"},
      {"plan:a/p+q(1).toml", "", "plan:a/p+q(1).toml", none, Origin::plan, "a/p+q(1).toml"},
      {"plan:", "", "plan:", none, Origin::plan},
      {"scores:s.h5", "", "scores:s.h5", none, Origin::scores, "s.h5"},
      {"scores:a+b(1).h5", "", "scores:a+b(1).h5", none, Origin::scores, "a+b(1).h5"},
      {"scores:a.h5+int8", "", "scores:a.h5", "int8", Origin::scores, "a.h5"},
      {"scores:a+b", "", "scores:a+b", none, Origin::scores, "a+b"},
      {"adakv(scores:d=1/a.h5)+int8", "adakv", "scores:d=1/a.h5", "int8", Origin::scores, "d=1/a.h5"},
      {"./mine.py:Mine", "", "./mine.py:Mine", none, Origin::python, "./mine.py", "Mine"},
      {"a.py:b/c+d.py:Mine", "", "a.py:b/c+d.py:Mine", none, Origin::python, "a.py:b/c+d.py", "Mine"},  // the last .py:
      {"m(1)+x.py:Mine+int8", "", "m(1)+x.py:Mine", "int8", Origin::python, "m(1)+x.py", "Mine"},
      {"x[1]/m.py:Mine", "", "x[1]/m.py:Mine", none, Origin::python, "x[1]/m.py", "Mine"},
      {"adakv(a+b.py:Mine)+int8", "adakv", "a+b.py:Mine", "int8", Origin::python, "a+b.py", "Mine"},
      {"py:Mine", "", "py:Mine", none, Origin::python, "", "Mine"},
      {"py:Mine@3+kivi4", "", "py:Mine@3", "kivi4", Origin::python, "", "Mine@3"},
      {"adakv(py:Mine)", "adakv", "py:Mine", none, Origin::python, "", "Mine"},
      // What no method has.
      {"", "", "", none},
      {"+int8", "", "", "int8"},
      {"snapkv+", "", "snapkv", ""},
      {"a+b+c", "", "a", "b+c"},
      {"adakv()", "", "adakv()", none},
      {"adakv(snapkv", "", "adakv(snapkv", none},
      {"adakv(snapkv)x", "", "adakv(snapkv)x", none},
      {"ada kv(snapkv)", "", "ada kv(snapkv)", none},
      {".py:Mine", "", ".py:Mine", none},
      {"mine.py", "", "mine.py", none, Origin::python, "mine.py"},
      {"adakv(a/mine.py)+int8", "adakv", "a/mine.py", "int8", Origin::python, "a/mine.py"},
      {".py", "", ".py", none},
      {"mine.pyc:Mine", "", "mine.pyc:Mine", none},
      {"PY:Mine", "", "PY:Mine", none},
      {"x(mine.py:Mine", "", "x(mine.py:Mine", none, Origin::python, "x(mine.py", "Mine"},
  };
  for (const auto& one : names) {
    CAPTURE(one.name);
    const MethodName read = parse_method_name(one.name);
    CHECK(read.wrapper == one.wrapper);
    CHECK(read.base == one.base);
    CHECK(read.quantiser == (one.quantiser ? std::optional<std::string>(one.quantiser) : std::nullopt));
    CHECK_FALSE(read.settings);
    CHECK(read.origin == one.origin);
    CHECK(read.file == one.file);
    CHECK(read.object == one.object);
    CHECK(read.name() == one.name);
    CHECK(is_plan(one.name) == (one.origin == Origin::plan));
  }
}

TEST_CASE("a name takes another path, if it has one") {
  const auto with = [](const char* name) { return parse_method_name(name).with_file("b/c").name(); };
  CHECK(with("plan:p.toml") == "plan:b/c");
  CHECK(with("adakv(scores:s.h5)+int8") == "adakv(scores:b/c)+int8");
  CHECK(with("mine.py:Mine+int8") == "b/c:Mine+int8");
  CHECK(with("py:Mine") == "py:Mine");
  CHECK(with("snapkv") == "snapkv");
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
