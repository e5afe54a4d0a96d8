// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/raw_reader.hpp>

#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>

#include <kvbench/replay/records/raw.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// Results of two methods on the small trace, one of them with two seeds, stored by write_raw().
struct Kept {
  SmallTrace trace;
  TempFolder folder;
  std::string path = folder / "raw.h5";
  MethodInfo half = answering("half", [](const QueryBlock&, Backend& b) { return ids_table(b, {0, 2, 4, 6, 8}); });
  MethodInfo drawn = answering("drawn", [](const QueryBlock&, Backend& b) { return ids_table(b, {1, 3, 5}); });
  ReplayRequest request;
  ReplayResults results;

  Kept() {
    drawn.seeded = true;
    request = request_of({&half, &drawn}, 5);
    request.seeds = {3, 8};
    request.protocol = Protocol::prefill;
    results = replay::replay(trace.reader(), request, serial);
    results.heads[3].results[0].status = Status::skipped;
    results.heads[3].results[0].reason = "no such thing";
    results.heads[2].results[1].dense = true;
    AtomicFile file(path);
    write_raw(file, trace.reader(), request, results);
  }
};

}  // namespace

TEST_CASE("raw results read back as they were written") {
  const Kept kept;
  const RawReader raw(kept.path, "log_z_err");
  REQUIRE(raw.configurations().size() == 3);
  CHECK(raw.configurations()[0].method == "half");
  CHECK(!raw.configurations()[0].seeded);
  CHECK(raw.configurations()[2].method == "drawn");
  CHECK(raw.configurations()[2].seed == 8);
  CHECK(raw.configurations()[2].seeded);
  CHECK(raw.configurations()[2].budget.text() == "5");
  REQUIRE(raw.places().size() == 2 * 4);  // layers, query heads
  const QueryPlace& place = raw.places()[3];
  CHECK(place.trace == "small.h5");
  CHECK(place.sha256 == kept.trace.reader().sha256().substr(0, 12));
  CHECK(place.prompt == kept.trace.reader().info().prompts[0].id);
  CHECK(place.protocol == "prefill");
  CHECK(place.layer == 0);
  CHECK(place.kv_head == 1);
  CHECK(place.query_head == 3);
  CHECK(place.context_tokens == 28);
  CHECK(raw.read(3, 0)->bytes_held == kept.results.heads[1].results[0].bytes.of(CostKind::memory));
  CHECK(raw.read(3, 0)->bytes_read == kept.results.heads[1].results[0].bytes.of(CostKind::read));
  CHECK(place.positions == kept.results.heads[1].positions);
  for (std::size_t p = 0; p < 8; ++p) {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto values = raw.read(p, c);
      REQUIRE(values);
      const ConfigurationResult& result = kept.results.heads[p / 2].results[c];
      CHECK(values->status == result.status);
      CHECK(values->reason == result.reason);
      CHECK(values->dense == result.dense);
      if (result.status != Status::ok) continue;
      const std::size_t m = raw.places()[p].positions.size();
      REQUIRE(values->values.size() == m);
      for (std::size_t i = 0; i < m; ++i) CHECK(values->values[i] == metric(result, p % 2 * m + i, Metric::log_z_err));
    }
  }
  CHECK(!raw.read(0, 3));
  const std::vector<NamedTokens> half = raw.entries(0, 0), drawn = raw.entries(3, 2);
  REQUIRE(half.size() == 1);
  CHECK(std::ranges::equal(half[0].row(1, 0), std::vector{0, 2, 4, 6, 8}));
  REQUIRE(drawn.size() == 1);
  CHECK(std::ranges::equal(drawn[0].row(0, 0), std::vector{1, 3, 5}));
  CHECK(raw.entries(6, 0).empty());  // skipped
  CHECK(raw.entries(0, 3).empty());
}

TEST_CASE("entries by query head and query name the tokens of each") {
  SmallTrace trace;
  const TempFolder folder;
  const std::string path = folder / "raw.h5";
  const MethodInfo method = answering("own", [](const QueryBlock& queries, Backend& b) {
    const Index rows = 2 * queries.size();
    std::vector<std::int32_t> ids;
    for (Index r = 0; r < rows; ++r) ids.push_back(static_cast<std::int32_t>(r));
    return EntryTables{{.per_head = true, .per_query = true, .ids = b.adopt(std::move(ids), rows, 1)}};
  });
  ReplayRequest request = request_of({&method}, 5);
  request.protocol = Protocol::prefill;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  AtomicFile file(path);
  write_raw(file, trace.reader(), request, results);
  const std::vector<NamedTokens> tables = RawReader(path, "rel_err").entries(1, 0);
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].queries == std::ssize(results.heads[0].positions));
  CHECK(tables[0].row(0, 1)[0] == 1);
  CHECK(tables[0].row(1, 0)[0] == tables[0].queries);
}

TEST_CASE("a file without raw results is refused by name") {
  const Kept kept;
  const auto complaint = [](const std::string& path, const char* metric) {
    return message_of<Error>([&] { const RawReader raw(path, metric); });
  };
  CHECK(contains(complaint(kept.folder / "none.h5", "rel_err"), "none.h5"));
  CHECK(contains(complaint(kept.trace.reader().path(), "rel_err"), "kvbench_raw"));
  CHECK(contains(complaint(kept.path, "rel_er"), "Did you mean 'rel_err'?"));
  std::string bytes;
  {
    std::ifstream file(kept.path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::ofstream(kept.folder / "cut.h5", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  CHECK(contains(complaint(kept.folder / "cut.h5", "rel_err"), "cut.h5"));
}
