// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <doctest/doctest.h>

#include <kvbench/sweep/estimate.hpp>
#include <kvbench/sweep/plan.hpp>
#include <kvbench/sweep/run.hpp>

#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::sweep;
using namespace kvbench::testing;

TEST_CASE("a shard is written as part and number of parts") {
  CHECK(Shard::parse("1/1").index == 1);
  CHECK(Shard::parse("3/8").index == 3);
  CHECK(Shard::parse("3/8").count == 8);
  for (const char* text : {"", "3", "0/8", "9/8", "3/", "/8", "3/8x", "-1/8", "a/b", "3 / 8"}) {
    CAPTURE(text);
    CHECK(contains(message_of<Error>([&] { Shard::parse(text); }), "1/8 to 8/8"));
  }
}

TEST_CASE("every work item is in exactly one shard, in order, for any number of shards") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(R"(
[[run]]
traces = ["t.h5", "u.h5"]
methods = ["sink", "infinigen", "uniform"]
measure = "clusterability"
)");
  for (const std::size_t count : {1u, 2u, 3u, 7u, 100u}) {
    CAPTURE(count);
    std::vector<std::vector<std::size_t>> items(2), measured(2);
    for (std::size_t i = 1; i <= count; ++i) {
      const auto work = select_work(plan, {i, count});
      REQUIRE(work.size() == 2);
      for (std::size_t s = 0; s < 2; ++s) {
        items[s].insert(items[s].end(), work[s].work_items.begin(), work[s].work_items.end());
        measured[s].insert(measured[s].end(), work[s].measured.begin(), work[s].measured.end());
      }
    }
    for (std::size_t s = 0; s < 2; ++s) {
      REQUIRE(items[s].size() == plan.steps[s].replay.work_items.size());
      for (std::size_t u = 0; u < items[s].size(); ++u) CHECK(items[s][u] == u);
      REQUIRE(measured[s].size() == 4);
      for (std::size_t h = 0; h < 4; ++h) CHECK(measured[s][h] == h);
    }
  }
}

TEST_CASE("shards have about equal weight") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan("[[run]]\ntraces = [\"t.h5\", \"u.h5\"]\nmethods = [\"sink\", \"uniform\"]\n");
  // Four heads of 40 tokens and four of 60, all with as many configurations: the middle of 400 is in the first head of
  // u.h5.
  const auto first = select_work(plan, {1, 2}), second = select_work(plan, {2, 2});
  CHECK(first[0].work_items.size() == 4);
  CHECK(first[1].work_items.size() == 1);  // 190 lies before 200
  CHECK(second[0].work_items.empty());
  CHECK(second[1].work_items.size() == 3);
}

namespace {

const std::string one_run =
    "[[run]]\ntraces = \"t.h5\"\nmethods = [\"exact\", \"uniform\", { name = \"snapkv\", window = 4 }]\nbudgets = [8, "
    "\"25%\"]\nseeds = 4\n";

}  // namespace

TEST_CASE("the file of cells has about the estimated size") {
  const Sweeps sweeps;
  for (const char* protocol : {"decode", "prefill", "stream"}) {
    CAPTURE(protocol);
    const SweepPlan plan = sweeps.plan(one_run + "protocol = \"" + protocol + "\"\n");
    const Estimate guess = estimate(plan, {});
    CHECK(guess.core_seconds > 0);
    CHECK(guess.threads >= 1);
    CHECK(guess.seconds <= guess.core_seconds);
    CHECK(guess.memory_bytes > 1e6);
    CHECK(guess.on_gpu == 0);
    const std::string path = sweeps.folder / (std::string(protocol) + ".cells");
    CellsFile file(path, FrameFile::Mode::overwrite);
    const SweepLayout layout = layout_of(plan);
    run_sweep(plan, layout, {}, file);
    const auto size = static_cast<double>(std::filesystem::file_size(path));
    CHECK(guess.cells_bytes > size / 2);
    CHECK(guess.cells_bytes < size * 2);
  }
}

TEST_CASE("an estimate refers to a shard, and names the methods that it leaves out") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(one_run + "protocol = \"stream\"\n");
  const Estimate whole = estimate(plan, {}), half = estimate(plan, {1, 2});
  CHECK(half.cells_bytes == doctest::Approx(whole.cells_bytes / 2));
  CHECK(whole.untimed == std::vector<std::string>{"uniform", "snapkv"});  // no streaming algorithms
  CHECK(contains(describe(whole), "not run on the first heads: uniform, snapkv"));
  CHECK(contains(describe(whole), "of processor time"));
  CHECK(describe(estimate(sweeps.plan("[[run]]\ntraces = \"t.h5\"\nmeasure = \"clusterability\"\n"), {})).empty());
}

TEST_CASE("after the limit the cost of further runs follows from that of the first") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(one_run + one_run + one_run + one_run);
  const Estimate whole = estimate(plan, {}), part = estimate(plan, {}, 0);
  CHECK((whole.timed_steps == 4 && part.timed_steps == 1 && part.steps == 4));
  CHECK(part.cells_bytes == doctest::Approx(whole.cells_bytes));
  CHECK(part.memory_bytes == whole.memory_bytes);
  CHECK(part.core_seconds > 0);
  CHECK(contains(describe(part), "1 of 4 runs were timed"));
  CHECK(!contains(describe(whole), "runs were timed"));
}
