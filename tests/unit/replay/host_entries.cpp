// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/host_entries.hpp>

#include <algorithm>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;

namespace {

using Ids = std::vector<std::int32_t>;

EntryTable table(Backend& backend, Ids ids, Index rows) {
  const Index width = std::ssize(ids) / rows;
  return {.per_query = true, .ids = backend.adopt(std::move(ids), rows, width)};
}

}  // namespace

TEST_CASE("a table on the host: slots in use, plain slots, different sets") {
  const auto backend = make_ref_backend();
  const ReadTable rows(on_host(table(*backend, {1, 5, -1, 0, 2, 3}, 2), *backend));
  CHECK(rows.used == 5);
  CHECK(rows.plain_count == 5);
  CHECK_FALSE(rows.weighted());
  CHECK(std::ranges::equal(rows.row(1), Ids{0, 2, 3}));

  EntryTable weighted = table(*backend, {4, 2, -1}, 1);
  weighted.weight_num = backend->adopt(std::vector<float>{1, 0, 1}, 1, 3);
  const ReadTable host(on_host(weighted, *backend));
  CHECK(host.plain_count == 1);  // token 4
  CHECK(host.two_sets);          // token 2 is in the denominator only
}

TEST_CASE("ids that increase are recognised") {
  CHECK(increasing_ids(Ids{1, 5, -1}).value().size() == 2);
  CHECK(increasing_ids(Ids{0, 2, 3}).value().size() == 3);
  CHECK_FALSE(increasing_ids(Ids{0, 4, 2}));
  CHECK_FALSE(increasing_ids(Ids{-1, 5, 7}));  // an unused slot first
}

TEST_CASE("a table is translated to the trace's token numbers") {
  const auto backend = make_ref_backend();
  const TokenMap shifted{.first = 10, .middle = 4, .last = 2};
  const EntryTable local = table(*backend, {1, 3, 4, -1}, 1);
  CHECK(backend->read(to_global(local, shifted, *backend).ids) == Ids{11, 13, 16, -1});
  CHECK(to_global(local, TokenMap{.middle = 8}, *backend).ids.same_as(local.ids));

  // Tokens 0 to 3 of the method are 2 to 5 of the trace; token 6 is protected, and token 4 of the method is 7.
  EntryTable rounded = local;
  rounded.token_values = backend->adopt(std::vector<float>{10, 11, 12, 13, 14}, 5, 1);
  const TokenMap two{.first = 2, .middle = 4, .last = 1};
  const std::vector<float> rows = backend->read(to_global(rounded, two, *backend).token_values);
  REQUIRE(rows.size() == 8);
  CHECK(std::vector<float>(rows.begin() + 2, rows.begin() + 6) == std::vector<float>{10, 11, 12, 13});
  CHECK(rows[7] == 14);
  CHECK(ReadTable(on_host(rounded, *backend)).plain_count == 0);
  CHECK_FALSE(to_global(rounded, two, *backend).token_keys.present());
}
