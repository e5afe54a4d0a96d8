// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/host_table.hpp>

#include <algorithm>

#include <doctest/doctest.h>

using namespace kvbench;

namespace {

using Ids = std::vector<std::int32_t>;

EntryTable table(Backend& backend, Ids ids, Index rows) {
  const Index width = std::ssize(ids) / rows;
  return {.per_query = true, .ids = backend.adopt(std::move(ids), rows, width)};
}

}  // namespace

TEST_CASE("a table on the host: slots in use, plain ones, rows that increase") {
  const auto backend = make_ref_backend();
  const HostTable rows(table(*backend, {1, 5, -1, 0, 2, 3}, 2), *backend);
  CHECK(rows.used == 5);
  CHECK(rows.plain_count == 5);
  CHECK(rows.increases());
  CHECK_FALSE(rows.weighted());
  CHECK_FALSE(HostTable(table(*backend, {1, 5, 0, 4, 2, 3}, 2), *backend).increases());
  CHECK_FALSE(HostTable(table(*backend, {-1, 5, 7, 0, 2, 3}, 2), *backend).increases());  // an unused slot first

  EntryTable weighted = table(*backend, {4, 2, -1}, 1);
  weighted.weight_num = backend->adopt(std::vector<float>{1, 0, 1}, 1, 3);
  const HostTable host(weighted, *backend);
  CHECK(host.plain_count == 1);  // token 4
  CHECK(host.two_sets);          // token 2 is in the denominator alone
}

TEST_CASE("a table that two budgets return is translated and read once") {
  const auto backend = make_ref_backend();
  TableStore store;
  const TokenMap shifted{.first = 10, .middle = 4, .last = 2};
  const EntryTable shared = table(*backend, {1, 3}, 1), copy = table(*backend, {1, 3}, 1);
  const auto first = store.hold(shared, shifted, *backend), again = store.hold(shared, shifted, *backend);
  CHECK(std::ranges::equal(first.host->ids, Ids{11, 13}));
  CHECK(backend->read(first.global.ids) == Ids{11, 13});
  CHECK(again.host == first.host);
  CHECK(again.global.ids.same_as(first.global.ids));
  CHECK(store.hold(copy, shifted, *backend).host != first.host);  // the same ids, but buffers of their own

  EntryTable weighted = shared;
  weighted.weight_den = backend->adopt(std::vector<float>{2, 2}, 1, 2);
  CHECK(store.hold(weighted, shifted, *backend).host != first.host);
}

TEST_CASE("part of a sound set is sound") {
  const auto backend = make_ref_backend();
  TableStore store;
  const EntryTable a = table(*backend, {1}, 1), b = table(*backend, {2}, 1), c = table(*backend, {3}, 1);
  CHECK_FALSE(store.found_sound({a}));
  store.add_sound({a, b});
  store.add_sound({c});
  CHECK(store.found_sound({b, a}));
  CHECK(store.found_sound({b}));
  CHECK_FALSE(store.found_sound({a, c}));  // both sound, but not together
}
