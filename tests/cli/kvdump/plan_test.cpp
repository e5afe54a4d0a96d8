// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/plan.hpp>

#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench::kvdump;
using Positions = std::vector<std::int64_t>;

TEST_CASE("layers are numbers and ranges, sorted and without duplicates") {
  CHECK(parse_layers("all", 3) == std::vector{0, 1, 2});
  CHECK(parse_layers("8,0,1", 9) == std::vector{0, 1, 8});
  CHECK(parse_layers("0-2,1,5", 6) == std::vector{0, 1, 2, 5});
  CHECK(parse_layers("0 - 2, 1,5 ", 6) == std::vector{0, 1, 2, 5});
}

TEST_CASE("invalid layers are refused") {
  for (const char* text : {"", "x", "1,", ",1", "-1", "3-1", "1-", "0 1", "99999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_layers(text, 4), kvbench::Error);
  }
  CHECK_THROWS_WITH_AS(parse_layers("0,4", 4), "--layers 0,4: there is no layer 4; this model has layers 0 to 3",
                       kvbench::Error);
}

TEST_CASE("query specifications") {
  CHECK(parse_queries("").kind == QuerySpec::tail);
  CHECK(parse_queries("all").kind == QuerySpec::all);
  CHECK(parse_queries("last:256").kind == QuerySpec::last);
  CHECK(parse_queries("last:256").count == 256);
  CHECK(parse_queries("every:7").kind == QuerySpec::every);
  CHECK(parse_queries("decode:3").kind == QuerySpec::decode);
  for (const char* text : {"last", "last:", "last:0", "last:-1", "last:x", "every:1x", "some:3", "all:3"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_queries(text), kvbench::Error);
  }
}

TEST_CASE("positions of stored queries") {
  CHECK(query_positions({QuerySpec::all, 0}, 4, 2) == Positions{0, 1, 2, 3});
  CHECK(query_positions({QuerySpec::last, 2}, 5, 3) == Positions{3, 4});
  CHECK(query_positions({QuerySpec::last, 9}, 2, 1) == Positions{0, 1});
  CHECK(query_positions({QuerySpec::every, 3}, 8, 4) == Positions{1, 4, 7});
  CHECK(query_positions({QuerySpec::every, 100}, 8, 4) == Positions{7});
  CHECK(query_positions({QuerySpec::every, std::numeric_limits<std::int64_t>::max()}, 8, 4) == Positions{7});
  CHECK(query_positions({QuerySpec::tail, 0}, 3, 1) == Positions{0, 1, 2});

  const auto tail = query_positions({QuerySpec::tail, 0}, 4096, 3840);  // the observation window has 128 positions
  CHECK(tail.front() == 3712);
  CHECK(tail.back() == 4095);
  CHECK(tail.size() == 384);
  CHECK(query_positions({QuerySpec::decode, 256}, 4096, 3840) == tail);
}

TEST_CASE("default length of the context") {
  CHECK(default_prompt_tokens({}, 4096) == 3840);
  CHECK(default_prompt_tokens({}, 100) == 75);
  CHECK(default_prompt_tokens({QuerySpec::decode, 10}, 100) == 90);
  CHECK_THROWS_AS(default_prompt_tokens({QuerySpec::decode, 100}, 100), kvbench::Error);
}

TEST_CASE("batches: full batches, a remainder, then decode steps") {
  CHECK(batch_sizes({}, 10, 4) == std::vector{4, 4, 2});
  CHECK(batch_sizes({}, 8, 4) == std::vector{4, 4});
  CHECK(batch_sizes({QuerySpec::decode, 3}, 8, 4) == std::vector{4, 1, 1, 1, 1});
  CHECK(batch_sizes({QuerySpec::decode, 2}, 8, 4) == std::vector{4, 2, 1, 1});
}
