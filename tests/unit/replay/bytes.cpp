// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/bytes.hpp>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;

TEST_CASE("bytes of an element") {
  CHECK(element_bytes(Element::kv, Element::f16) == 2);
  CHECK(element_bytes(Element::kv, Element::f32) == 4);
  CHECK(element_bytes(Element::f32, Element::f16) == 4);
  CHECK(element_bytes(Element::i32, Element::f16) == 4);
  CHECK(element_bytes(Element::f16, Element::f32) == 2);
  CHECK(element_bytes(Element::u8, Element::f32) == 1);
}

TEST_CASE("a footprint is summed by kind, tier and read") {
  const Footprint footprint = {
      {.name = "keys", .rows = 10, .cols = 4, .tier = Tier::slow, .read = Read::with_entry},    // 80 B, 8 per row
      {.name = "values", .rows = 10, .cols = 6, .tier = Tier::slow, .read = Read::with_entry},  // 120 B, 12 per row
      {.name = "window", .rows = 3, .cols = 10},                                                // 60 B
      {.name = "centroids", .element = Element::f32, .rows = 2, .cols = 4, .content = Content::meta},  // 32 B
      {.name = "labels", .element = Element::u8, .rows = 10, .cols = 1, .read = Read::never, .content = Content::meta},
  };
  const Bytes bytes = account(footprint, Element::f16, 4.5, 10, 4, 6);
  CHECK(bytes.kv == 80 + 120 + 60);
  CHECK(bytes.meta == 32 + 10);
  CHECK(bytes.slow == 200);
  CHECK(bytes.fast == 60 + 32 + 10);
  CHECK(bytes.read == 4.5 * 20 + 60 + 32);
  CHECK(bytes.full == 10 * 10 * 2);
}

TEST_CASE("the element type of the cache applies to kv arrays only") {
  const Footprint footprint = {
      {.name = "keys", .rows = 5, .cols = 2},
      {.name = "weights", .element = Element::f16, .rows = 5, .cols = 1, .content = Content::meta}};
  const Bytes bytes = account(footprint, Element::f32, 0, 5, 2, 0);
  CHECK(bytes.kv == 5 * 2 * 4);
  CHECK(bytes.meta == 5 * 2);
  CHECK(bytes.full == 5 * 2 * 4);
}

TEST_CASE("a query reads an array at most once") {
  const Footprint footprint = {{.name = "keys", .rows = 3, .cols = 1, .read = Read::with_entry}};
  CHECK(account(footprint, Element::f16, 100, 3, 1, 1).read == 6);
}

TEST_CASE("entries are read from the arrays in which they lie") {
  const Footprint footprint = {
      {.name = "codes", .element = Element::u8, .rows = 6, .cols = 4, .read = Read::with_entry, .share = 0.75},
      {.name = "scales of groups",
       .element = Element::u8,
       .rows = 2,
       .cols = 5,
       .read = Read::with_entry,
       .share = 0.75},
      {.name = "rest", .rows = 2, .cols = 4, .read = Read::with_entry, .share = 0.25}};
  CHECK(account(footprint, Element::f16, 4, 8, 4, 0).read == 3 * 4 + 2 * 5 + 1 * 8);
}

TEST_CASE("an empty footprint costs nothing") {
  const Bytes bytes = account({}, Element::f16, 5, 7, 2, 2);
  CHECK(bytes.kv + bytes.meta + bytes.fast + bytes.slow + bytes.read == 0);
  CHECK(bytes.full == 7 * 4 * 2);
}
