// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/config/sweep_run.hpp>
#include <kvbench/replay/replay.hpp>
#include <unit/config/files.hpp>
#include <unit/replay/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::testing;

namespace {

/// A folder with the small trace t.h5 (40 tokens, 28 of them the context, 2 layers, 2 kv heads) and another one.
class Sweeps : public SweepFiles {
 public:
  Sweeps() {
    trace::synthesize(folder / "t.h5", small_options());
    trace::SynthOptions longer = small_options();
    longer.num_tokens = 60;
    trace::synthesize(folder / "u.h5", longer);
  }
  SweepPlan plan(const std::string& text) const { return plan_sweep(read(text)); }
  std::string plan_refusal(const std::string& text) const {
    return message_of<Error>([&] { plan(text); });
  }
};

}  // namespace

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
  CHECK(plan.steps[0].measured_heads == 0);
  CHECK(plan.steps[1].reader->path() == sweeps.folder / "u.h5");
  CHECK(plan.steps[2].reader == plan.steps[0].reader);
  CHECK(plan.steps[2].replay.cells.empty());
  CHECK(plan.steps[2].measured_heads == 2);
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

TEST_CASE("a sweep gives the records and measures of its runs, named and in order") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(R"(
[[run]]
name = "first"
traces = "t.h5"
methods = ["sink", "random"]
budgets = 8
seeds = 2
measure = "similarity-by-distance"
[[run]]
name = "second"
traces = ["t.h5", "u.h5"]
protocol = "prefill"
methods = "exact"
)");
  std::vector<std::pair<Index, Index>> progress;
  const SweepResults results =
      run_sweep(plan, Grain::layer, {.progress = [&](Index done, Index total) { progress.emplace_back(done, total); }});
  std::vector<std::string> runs;
  for (const Record& r : results.records) runs.push_back(r.run + " " + r.trace + " " + r.method);
  // Three rows each: all layers, and each of two.
  CHECK(runs.size() == 3 * (2 + 1 + 1));
  CHECK(runs.front() == "first t.h5 sink");
  CHECK(runs[1] == "first t.h5 random");
  CHECK(runs[6] == "second t.h5 exact");
  CHECK(runs.back() == "second u.h5 exact");
  CHECK(results.measures.size() == 4 * 39);
  CHECK(results.measures.front().run == "first");
  // Units: 4 heads to replay and 4 to measure, then 4 and 4 to replay.
  REQUIRE(progress.size() == 16);
  for (std::size_t i = 0; i < progress.size(); ++i) CHECK(progress[i] == std::pair<Index, Index>(i + 1, 16));

  const SweepRun& run = plan.sweep.runs[0];
  const ReplayResults alone = replay(*plan.steps[0].reader, run.request);
  const std::vector<Record> records = summarize(alone, Grain::layer);
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].metrics[0].mean == results.records[i].metrics[0].mean);
    CHECK(records[i].run.empty());
  }
}

TEST_CASE("an interruption ends the sweep") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan("[[run]]\ntraces = \"t.h5\"\nmethods = \"sink\"\n");
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(run_sweep(plan, Grain::trace, {.stop = &stop}), Interrupted);
}
