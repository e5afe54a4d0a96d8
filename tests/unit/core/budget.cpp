// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/budget.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using kvbench::Budget;

TEST_CASE("a number is a number of tokens for any context") {
  CHECK(Budget::parse("256").resolve(1000, 256) == 256);
  CHECK(Budget::parse("256").resolve(10, 256) == 256);
  CHECK(Budget::tokens(7).text() == "7");
}

TEST_CASE("a share is rounded half up and exact in decimals") {
  CHECK(Budget::parse("25%").resolve(3840, 256) == 960);
  CHECK(Budget::parse("10%").resolve(100, 256) == 10);
  CHECK(Budget::parse("12.5%").resolve(100, 256) == 13);  // 12.5 rounds up
  CHECK(Budget::parse("12.5%").resolve(8, 256) == 1);
  CHECK(Budget::parse("0.1%").resolve(1499, 256) == 1);
  CHECK(Budget::parse("0.1%").resolve(1500, 256) == 2);
  CHECK(Budget::parse("100%").resolve(77, 256) == 77);
}

TEST_CASE("a share of a non-empty context is at least one token") {
  CHECK(Budget::parse("1%").resolve(3, 256) == 1);
  CHECK(Budget::parse("1%").resolve(0, 256) == 0);
}

TEST_CASE("bytes are tokens rounded down") {
  CHECK(Budget::parse("64KiB").resolve(1000, 256) == 256);
  CHECK(Budget::parse("64KB").resolve(1000, 256) == 250);
  CHECK(Budget::parse("1.5MiB").resolve(0, 512) == 3072);
  CHECK(Budget::parse("767B").resolve(1000, 256) == 2);
  CHECK(Budget::parse("255B").resolve(1000, 256) == 0);
  CHECK(Budget::parse("0.001KB").resolve(1000, 1) == 1);
  CHECK(Budget::parse("2GiB").resolve(1, 2) == 1 << 30);
  CHECK(Budget::parse("64KiB").text() == "64KiB");
  CHECK(Budget::parse("64KiB").is_bytes());
  CHECK(!Budget::parse("64KiB").is_share());
}

TEST_CASE("other words for a budget have one text in results") {
  const struct {
    const char *spelling, *text;
  } spellings[] = {{"0.25", "25%"},         {".25", "25%"},
                   {"0.125", "12.5%"},      {"0.000001", "0.0001%"},
                   {"0.10", "10%"},         {"25.0%", "25%"},
                   {"025%", "25%"},         {"25 %", "25%"},
                   {" 25% ", "25%"},        {"25percent", "25%"},
                   {"12.50%", "12.5%"},     {"100.0%", "100%"},
                   {"1k", "1024"},          {"2K", "2048"},
                   {"0256", "256"},         {"256 tokens", "256"},
                   {"1 token", "1"},        {"1", "1"},
                   {"25 %mem", "25%mem"},   {"25% mem", "25%mem"},
                   {"25%Mem", "25%mem"},    {"25%memory", "25%mem"},
                   {"0.25mem", "25%mem"},   {"0.25 memory", "25%mem"},
                   {".5fast", "50%fast"},   {"12.50%fast", "12.5%fast"},
                   {"25%reads", "25%read"}, {"0.5read", "50%read"},
                   {"64kb", "64KB"},        {"64 KB", "64KB"},
                   {"64kib", "64KiB"},      {"1 KiB", "1KiB"},
                   {"0.50MIB", "0.5MiB"},   {"64KiB", "64KiB"},
                   {"512b", "512B"},        {"2 gib", "2GiB"}};
  for (const auto& [spelling, text] : spellings) {
    CAPTURE(spelling);
    const Budget budget = Budget::parse(spelling), same = Budget::parse(text);
    CHECK(budget.text() == text);
    CHECK(same.text() == text);
    CHECK(budget.resolve(3840, 256) == same.resolve(3840, 256));
    CHECK(budget.cost() == same.cost());
    CHECK(budget.is_bytes() == same.is_bytes());
  }
}

TEST_CASE("an invalid budget is rejected by name") {
  for (const char* text : {"",
                           " ",
                           "0",
                           "-1",
                           "0%",
                           "101%",
                           "%",
                           "1e3",
                           "abc",
                           "1.5",
                           "1e3B",
                           "0.0000001%",
                           ".%",
                           "0B",
                           "KiB",
                           "-1KiB",
                           "1.5",
                           "1.5 kib b",
                           "9999999999999GiB",
                           "1.0",
                           "0.0",
                           ".",
                           "0.5.1",
                           "0k",
                           "k",
                           "1.5k",
                           "0.1234567",
                           "1000000000000k",
                           "0%mem",
                           "101%mem",
                           "25mem",
                           "1.0mem",
                           "%mem",
                           "25%cache",
                           "mem25%",
                           "2 5%",
                           "1 000",
                           "1/4",
                           "25%%",
                           "4x",
                           "64KiB/head",
                           "1m",
                           "25% of the memory"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Budget::parse(text), kvbench::Error);
    CHECK_FALSE(Budget::find(text));
  }
  CHECK(Budget::find("0.25")->text() == "25%");
}

TEST_CASE("a limit of a cost is a share of the full cache") {
  const Budget memory = Budget::parse("25%mem"), fast = Budget::parse("12.5%fast"), read = Budget::parse("100%read");
  CHECK(memory.cost() == kvbench::CostKind::memory);
  CHECK(fast.cost() == kvbench::CostKind::fast);
  CHECK(read.cost() == kvbench::CostKind::read);
  CHECK(memory.share() == 0.25);
  CHECK(fast.share() == 0.125);
  CHECK(memory.text() == "25%mem");
  CHECK(memory.resolve(1000, 256) == 250);  // the first guess
  CHECK_FALSE(Budget::parse("25%").cost());
  CHECK_FALSE(Budget::parse("64KiB").cost());
}
