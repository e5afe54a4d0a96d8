// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <tuple>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/read_files.hpp>
#include <kvbench/core/temporary_folder.hpp>
#include <kvbench/methods/python_name.hpp>
#include <kvbench/methods/registry.hpp>

using namespace kvbench;
using namespace kvbench::methods;

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
