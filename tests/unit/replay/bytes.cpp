// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/bytes.hpp>

#include <doctest/doctest.h>

#include <kvbench/replay/kept/held.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;

namespace {

/// A table by query of 2 query heads and 2 queries; row g * 2 + i reads token g and token 4 + i.
KeptTable by_query() {
  KeptTable table;
  table.entries.per_head = table.entries.per_query = true;
  table.entries.rows = 4, table.entries.width = 2;
  table.entries.ids = HostView(std::vector<std::int32_t>{0, 4, 0, 5, 1, 4, 1, 5});
  return table;
}

HeldTokens held(Index rows, std::vector<std::int32_t> ids) {
  const Index width = static_cast<Index>(ids.size()) / rows;
  return {.rows = rows, .width = width, .ids = HostView(std::move(ids))};
}

/// Bytes with d = 1, dv = 2 of 6 tokens, of which a query reads 4 entries: 6 bytes per token.
Bytes bytes_of(KeptTable table, Index decoded = 0) {
  KeptHead head;
  head.tables.push_back(std::move(table));
  return account(held_footprint(head, 2, 6, decoded, 1, 2), Element::f16, 4, 6, 1, 2);
}

}  // namespace

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

TEST_CASE("a table by query holds the full cache in slow memory unless it declares what is held") {
  const Bytes bytes = bytes_of(by_query(), 3);
  CHECK(bytes.slow == 6 * 6);
  CHECK(bytes.fast == 0);
  CHECK(bytes.read == 4 * 6);
}

TEST_CASE("tokens declared as held count once for all query heads, or for each with rows of its own") {
  KeptTable table = by_query();
  table.fast = held(1, {0, 1, 4, 5, 7, -1});  // token 7 does not exist yet
  CHECK(table.entry_not_held() == -1);
  CHECK(bytes_of(std::move(table)).fast == 4 * 6);
  table = by_query();
  table.fast = held(4, {0, 4, -1, 0, 5, 3, 1, 4, -1, 1, 5, -1});  // query 0 holds 2 + 2 tokens, query 1 holds 3 + 2
  table.meta_bytes = 9;
  const Bytes bytes = bytes_of(std::move(table), 1);
  CHECK(bytes.kv == (5 + 1) * 6);
  CHECK(bytes.meta == 9);
}

TEST_CASE("a token is held once in a tier") {
  CHECK(held(1, {0, 1, -1, -1}).listed_twice() == -1);
  CHECK(held(1, {5, 1, 5}).listed_twice() == 5);
  CHECK(held(2, {5, 1, 1, 5}).listed_twice() == -1);
  CHECK(held(2, {5, 1, 4, 4}).listed_twice() == 4);
  CHECK(HeldTokens{}.listed_twice() == -1);
}

TEST_CASE("an entry may be held in either tier, and is read once") {
  KeptTable table = by_query();
  table.fast = held(1, {4, 5});
  CHECK(table.entry_not_held() == 0);
  table.slow = held(1, {0, 1, 2});
  CHECK(table.entry_not_held() == -1);
  const Bytes bytes = bytes_of(std::move(table));
  CHECK(bytes.fast == 2 * 6);
  CHECK(bytes.slow == 3 * 6);
  CHECK(bytes.read == 3 * 6);  // of the larger tier, which limits the 4 entries
}
