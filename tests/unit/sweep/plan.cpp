// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::sweep;
using namespace kvbench::testing;
using trace::test::contains;

TEST_CASE("a plan has a step for each run and trace, and opens a trace once") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(R"(
[defaults]
traces = ["t.h5", "u.h5"]
[[run]]
methods = ["sink", "uniform"]
seeds = 3
budgets = [8, 12]
[[run]]
traces = "t.h5"
layers = 1
measure = "clusterability"
)");
  REQUIRE(plan.steps.size() == 3);
  CHECK(plan.steps[0].replay.cells.size() == 2 * (1 + 3));
  CHECK(plan.steps[0].replay.heads.size() == 4);
  CHECK(plan.steps[0].measured.empty());
  CHECK(plan.steps[1].reader->path() == sweeps.folder / "u.h5");
  CHECK(plan.steps[2].reader == plan.steps[0].reader);
  CHECK(plan.steps[2].replay.cells.empty());
  CHECK(plan.steps[2].measured.size() == 2);
  CHECK(has_replays(plan));
  CHECK(has_measures(plan));
  const std::string text = describe(plan);
  for (const char* part :
       {"run 1 on t.h5", "run 1 on u.h5", "uniform x 3 seeds", "8 (8), 12 (12)", "8 configurations x 4 heads = 32",
        "clusterability of 2 kv heads", "2 runs, 64 cells, 2 heads to measure"}) {
    CAPTURE(part);
    CHECK(contains(text, part));
  }
}

TEST_CASE("what cannot run is refused with run, trace and place") {
  const Sweeps sweeps;
  const auto refused = [&](const std::string& lines) {
    return sweeps.plan_refusal("[[run]]\nname = \"r\"\nmethods = \"sink\"\n" + lines + "\n");
  };
  CHECK(contains(refused(""), "s.toml:1:1: run 'r' has no traces"));
  CHECK(contains(refused("traces = [\"t.h5\", \"v.h5\"]"), "s.toml:4:19: " + (sweeps.folder / "v.h5")));
  CHECK(contains(refused("traces = \"s.toml\""), "s.toml:4:10: "));
  CHECK(contains(refused("traces = \"t.h5\"\nbudgets = [8, 29]"), "s.toml:1:1: run 'r' on " + (sweeps.folder / "t.h5")));
  CHECK(contains(refused("traces = \"t.h5\"\nbudgets = [8, 29]"), "29 is larger than the context of 28"));
  CHECK(contains(refused("traces = \"t.h5\"\nlayers = 7"), "layer 7"));
  CHECK(contains(refused("traces = \"t.h5\"\nprotect = [14, 14]"), "whole context"));
  CHECK(contains(refused("traces = \"t.h5\"\nprotocol = \"prefill\"\nwindow = 40"), "window"));
}
