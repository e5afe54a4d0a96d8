// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/budget.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using kvbench::Budget;

TEST_CASE("a number is tokens whatever the context") {
  CHECK(Budget::parse("256").resolve(1000) == 256);
  CHECK(Budget::parse("256").resolve(10) == 256);
  CHECK(Budget::tokens(7).text() == "7");
}

TEST_CASE("a share is rounded half up and exact in decimals") {
  CHECK(Budget::parse("25%").resolve(3840) == 960);
  CHECK(Budget::parse("10%").resolve(100) == 10);
  CHECK(Budget::parse("12.5%").resolve(100) == 13);  // 12.5 rounds up
  CHECK(Budget::parse("12.5%").resolve(8) == 1);
  CHECK(Budget::parse("0.1%").resolve(1499) == 1);
  CHECK(Budget::parse("0.1%").resolve(1500) == 2);
  CHECK(Budget::parse("100%").resolve(77) == 77);
}

TEST_CASE("a share of a context that is not empty keeps at least one token") {
  CHECK(Budget::parse("1%").resolve(3) == 1);
  CHECK(Budget::parse("1%").resolve(0) == 0);
}

TEST_CASE("what is no budget is refused by name") {
  for (const char* text : {"", "0", "-1", "0%", "101%", "%", "1e3", "25 %", "abc", "1.5", "0.0000001%", ".%"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Budget::parse(text), kvbench::Error);
  }
}
