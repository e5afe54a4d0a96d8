// SPDX-License-Identifier: Apache-2.0
// Files with valid checksums that kvbench did not write.
#include <kvbench/sweep/cells_file.hpp>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include <doctest/doctest.h>

#include <kvbench/sweep/cells_results.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/merge.hpp>
#include <support/messages.hpp>
#include <support/small_cells.hpp>
#include <support/temp_folder.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::sweep;
using namespace kvbench::testing;
using kvbench::testing::small_block;
using kvbench::testing::small_layout;
using kvbench::testing::write_cells;

namespace {

/// What merge says of the file; compare says the same.
std::string refusal(const SweepLayout& layout, const CellBlock& block) {
  const TempFolder folder;
  const std::string path = folder / "c.cells";
  write_cells(path, layout, block);
  const std::string message = message_of<Error>([&] {
    const Merged merged = open_shards({path});
    collect(merged.layout, merged.files, Grain::query);
  });
  CHECK(message == message_of<Error>([&] { CellsResults(path, Metric::rel_err).read(0, 0); }));
  return message;
}

}  // namespace

TEST_CASE("a small file of cells is merged and compared") {
  const TempFolder folder;
  write_cells(folder / "c.cells", small_layout(), small_block());
  const Merged merged = open_shards({folder / "c.cells"});
  const SweepResults results = collect(merged.layout, merged.files, Grain::trace);
  REQUIRE(results.records.size() == 2);
  CHECK(results.records[0].of(Metric::rel_err).mean == 0.5);
  CHECK(results.measures.size() == 1);
  CHECK(CellsResults(folder / "c.cells", Metric::rel_err).read(3, 1)->values.size() == 3);
}

TEST_CASE("every index of a layout must refer to something") {
  using Change = std::function<void(StepLayout&)>;
  const std::pair<const char*, Change> changes[] = {
      {"query heads", [](StepLayout& s) { s.frame.group = 0; }},
      {"query heads", [](StepLayout& s) { s.frame.group = Index{1} << 40; }},
      {"other queries", [](StepLayout& s) { s.frame.group = 1; }},
      {"number of layers", [](StepLayout& s) { s.frame.model_layers = -1; }},
      {"two prompts", [](StepLayout& s) { s.frame.prompts.push_back(s.frame.prompts[0]); }},
      {"no prompt", [](StepLayout& s) { s.frame.prompts.clear(); }},
      {"has no name", [](StepLayout& s) { s.frame.methods[0].name = ""; }},
      {"method is listed twice", [](StepLayout& s) { s.frame.methods.push_back(s.frame.methods[0]); }},
      {"a budget is none", [](StepLayout& s) { s.frame.budgets[0] = Budget(); }},
      {"method or budget", [](StepLayout& s) { s.frame.budgets.pop_back(); }},
      {"a configuration is listed twice",
       [](StepLayout& s) {
         s.frame.configurations[1] = {0, 0, 0};
       }},
      {"other configurations", [](StepLayout& s) { s.frame.configurations.pop_back(); }},
      {"a digest is none", [](StepLayout& s) { s.frame.sha256[0] = 'g'; }},
      {"a digest is none", [](StepLayout& s) { s.frame.sha256 += "0"; }},
      {"tokens", [](StepLayout& s) { s.frame.prompts[0].context_tokens = -1; }},
      {"method or budget", [](StepLayout& s) { s.frame.configurations[1].method = 1; }},
      {"method or budget", [](StepLayout& s) { s.frame.configurations[1].budget = 2; }},
      {"no prompt", [](StepLayout& s) { s.heads[1].place.prompt = 1; }},
      {"no prompt", [](StepLayout& s) { s.measured[0].place.prompt = 1; }},
      {"head or layer", [](StepLayout& s) { s.heads[1].place.kv_head = Index{1} << 62; }},
      {"position", [](StepLayout& s) { s.heads[1].positions[2] = -1; }},
      {"head or layer", [](StepLayout& s) { s.heads[1].layer = -1; }},
      {"other queries", [](StepLayout& s) { s.heads[1].positions.pop_back(); }},
      {"the queries are not in order",
       [](StepLayout& s) { std::swap(s.heads[1].positions[0], s.heads[1].positions[1]); }},
      {"the heads are not in order", [](StepLayout& s) { s.heads[1].place = s.heads[0].place; }},
      {"the heads are not in order", [](StepLayout& s) { std::swap(s.heads[0], s.heads[1]); }},
      {"unknown head", [](StepLayout& s) { s.heads.pop_back(); }},
      {"a head has no cell of a method", [](StepLayout& s) { s.cells.clear(); }},
      {"a head has no cell of a method", [](StepLayout& s) { s.measures.clear(); }},
      {"two cells are of the same key", [](StepLayout& s) { s.cells.push_back(s.cells[0]); }},
      {"no method or head", [](StepLayout& s) { s.cells[0].method = 1; }},
      {"no method or head", [](StepLayout& s) { s.cells[0].heads.clear(); }},
      {"unknown head", [](StepLayout& s) { s.cells[0].heads[1] = 2; }},
      {"the same head", [](StepLayout& s) { s.cells[0].heads[1] = 0; }},
      {"no method or head", [](StepLayout& s) { s.measures[0].heads.clear(); }},
      {"unknown head", [](StepLayout& s) { s.measures[0].heads[0] = 1; }},
  };
  for (const auto& change : changes) {
    const auto& fault = change.first;
    CAPTURE(fault);
    SweepLayout layout = small_layout();
    change.second(layout.steps[0]);
    CHECK(contains(refusal(layout, small_block()), fault));
  }
}

TEST_CASE("a layout that multiplies to more results than a sweep can have is refused") {
  SweepLayout layout = small_layout();
  StepLayout& step = layout.steps[0];
  step.heads.clear();
  for (Index head = 0; head < 10'000; ++head) step.heads.push_back({.place = {0, 0, head}});
  step.frame.configurations.assign(10'000, {0, 0, 0});
  CHECK(contains(refusal(layout, small_block()), "more results than can be computed"));
  layout = small_layout();
  layout.steps[0].frame.group = 1024;
  auto& positions = layout.steps[0].heads[0].positions;
  positions.resize(600'000);
  std::iota(positions.begin(), positions.end(), 0);
  CHECK(contains(refusal(layout, small_block()), "more results than can be computed"));
}

TEST_CASE("a block must have the heads, configurations and queries of its entry") {
  const SweepLayout layout = small_layout();
  CellBlock block = small_block();
  block.pop_back();
  CHECK(contains(refusal(layout, block), "other heads"));
  block = small_block();
  block[0].pop_back();
  CHECK(contains(refusal(layout, block), "other configurations"));
  block = small_block();
  block[0][0].metrics.pop_back();
  CHECK(contains(refusal(layout, block), "other queries"));
  block = small_block();
  block[0][0].rel_err_fro.clear();
  CHECK(contains(refusal(layout, block), "other queries"));
}

TEST_CASE("counts and values that the bytes cannot hold are refused") {
  const std::string block = encode_cells(small_block());
  REQUIRE(block == encode_cells(decode_cells(block)));
  const auto with = [](std::string bytes, std::size_t at, auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  // A block begins with the number of its heads (8 bytes), that of the configurations of the first one (8), and the
  // status of the first result (4).
  CHECK_THROWS_AS(decode_cells(with(block, 0, std::uint64_t{block.size() - 8})), std::out_of_range);
  CHECK_THROWS_AS(decode_cells(with(block, 8, std::uint64_t{100})), std::out_of_range);
  CHECK_THROWS_AS(decode_cells(with(block, 16, std::uint32_t{4})), std::out_of_range);
  CHECK_THROWS_AS(decode_cells(with(block, 16, ~std::uint32_t{0})), std::out_of_range);
  const std::size_t dense = 16 + 4 + 8 + (8 + 8 + 6 + 8);  // after status, reason and a note
  CHECK_THROWS_AS(decode_cells(with(block, dense, std::uint8_t{2})), std::out_of_range);
  // Rows without metrics, whatever their number, would take no bytes.
  std::string rows;
  for (std::size_t at = 0; at + 12 <= block.size() && rows.empty(); ++at) {
    std::uint64_t count = 0, values = 0;
    std::uint32_t present = 0;
    std::memcpy(&count, block.data() + at, 8);
    std::memcpy(&present, block.data() + at + 8, 4);
    std::memcpy(&values, block.data() + at + 12, 8);
    if (count != 6 || present != 1 || values != 6) continue;
    rows = with(with(with(block, at, std::uint64_t{1} << 29), at + 8, std::uint32_t{0}), at + 12, std::uint64_t{0});
    rows.erase(at + 20, 6 * sizeof(float));
  }
  REQUIRE(!rows.empty());
  CHECK_THROWS_AS(decode_cells(rows), std::out_of_range);
  CellBlock nothing = small_block();
  for (auto& row : nothing[0][0].metrics) row.fill(NAN);
  CHECK(decode_cells(encode_cells(nothing))[0][0].metrics.size() == 6);
}
