// SPDX-License-Identifier: Apache-2.0
#include <kvbench/golden/ids.hpp>

#include <doctest/doctest.h>

using namespace kvbench::golden;

TEST_CASE("equal lists become one, and every list is sorted") {
  CHECK(canonical({{3, 1, 2}, {2, 3, 1}}) == Ids{{1, 2, 3}});
  CHECK(canonical({{3, 1}, {1}}) == Ids{{1, 3}, {1}});
  CHECK(ids_of_head({{1, 2, 3}}, 2) == std::vector<std::int32_t>{1, 2, 3});
  CHECK(ids_of_head({{1, 3}, {1}}, 1) == std::vector<std::int32_t>{1});
}

TEST_CASE("ids as text") {
  const auto check = [](const Ids& ids, const char* text) {
    CHECK(text_of(ids) == text);
    CHECK(parse_ids(text) == ids);
  };
  check({{0, 1, 2, 3, 7, 9, 10}}, "0-3 7 9-10");
  check({{5, 5, 6, 6}}, "5 5-6 6");  // two entries of one token
  check({{1, 2}, {}, {4}}, "1-2//4");
  check({{}}, "");
}

TEST_CASE("texts that are no ids") {
  for (const char* text : {" ", "1,2", "3 1", "2-1", "-1", "1-", "1  2", "1 ", "1-2-3", "a", "4294967296", "1/ 2"})
    CHECK_MESSAGE(!parse_ids(text), text);
  CHECK(parse_ids("0-1048575"));
  CHECK(!parse_ids("0-1048576"));  // more than most_ids
  CHECK(!parse_ids("0-1048575/0"));
}

TEST_CASE("the digest is that of numbers and ids as little-endian int32") {
  // printf '\x02\0\0\0\x01\0\0\0\0\x02\0\0\x01\0\0\0\x07\0\0\0' | sha256sum
  const char* two_lists = "85aca0563b09996e";
  CHECK(digest_of({{1, 512}, {7}}, 2) == two_lists);
  CHECK(digest_of({{7}}, 2) == digest_of({{7}, {7}}, 2));  // a single list stands for all heads
  CHECK(digest_of({{1}, {2, 3}}, 2) != digest_of({{1, 2}, {3}}, 2));
}
