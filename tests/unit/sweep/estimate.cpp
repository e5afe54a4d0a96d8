// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/estimate.hpp>

#include <filesystem>

#include <doctest/doctest.h>

#include <kvbench/sweep/run.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::sweep;
using namespace kvbench::testing;
using trace::test::contains;

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
