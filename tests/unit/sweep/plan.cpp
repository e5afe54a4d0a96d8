// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/sweep/estimate.hpp>
#include <kvbench/sweep/key.hpp>

#include <support/changed_inputs.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::config;
using namespace kvbench::sweep;
using namespace kvbench::testing;

TEST_CASE("a plan has a step per run and trace, and opens each trace once") {
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
  CHECK(plan.steps[0].replay.configurations.size() == 2 * (1 + 3));
  CHECK(plan.steps[0].replay.heads.size() == 4);
  CHECK(plan.steps[0].measured.empty());
  CHECK(plan.steps[1].reader->path() == sweeps.folder / "u.h5");
  CHECK(plan.steps[2].reader == plan.steps[0].reader);
  CHECK(plan.steps[2].replay.configurations.empty());
  CHECK(plan.steps[2].measured.size() == 2);
  CHECK(has_replays(plan));
  CHECK(has_measures(plan));
  const std::string text = describe(plan);
  for (const char* part : {"run 1 on t.h5", "run 1 on u.h5", "uniform x 3 seeds", "8 (8), 12 (12)",
                           "results  8 configurations x 4 kv heads = 32", "clusterability of 2 kv heads",
                           "2 runs, 64 results, 2 kv heads to measure"}) {
    CAPTURE(part);
    CHECK(contains(text, part));
  }
}

TEST_CASE("a calibration text is opened and checked with the plan") {
  const Sweeps sweeps;
  trace::SynthOptions other = small_options();
  other.seed = 9;
  trace::synthesize(sweeps.folder / "v.h5", other);
  const std::string run = "[[run]]\nname = \"r\"\ntraces = \"t.h5\"\n", infinigen = "methods = \"infinigen\"\n";
  const SweepPlan plan = sweeps.plan(run + infinigen + "calibrate = \"v.h5\"\n");
  CHECK(plan.steps[0].request.calibration->text() == "v.h5, prompt '0'");
  CHECK(contains(describe(plan), "calibrated on v.h5, prompt '0'"));
}

TEST_CASE("a field that no key of the sweep file sets keeps its name in errors") {
  const Sweeps sweeps;
  const SweepPlan plan = plan_sweep(sweeps.read("[[run]]\nmethods = \"sink\"\ntraces = \"t.h5\"\n"), {.memory = 1e6});
  CHECK(contains(message_of<Error>([&] { estimate(plan, {}); }),
                 "s.toml:1:1: run '1' on " + (sweeps.folder / "t.h5") + ": a head of 40"));
  CHECK(contains(message_of<Error>([&] { estimate(plan, {}); }), "raise `memory`, or"));
}

TEST_CASE("several protocols, or joined lists, do not replay the same heads of a trace twice") {
  const Sweeps sweeps;
  const std::string run = "[[run]]\nmethods = \"sink\"\nbudgets = [8, 12]\n";
  CHECK(sweeps.plan(run + "traces = \"t.h5\"\nprotocol = [\"prefill\", \"decode\"]\n").steps.size() == 2);
  // zip may name a trace for every budget.
  CHECK(sweeps.plan(run + "traces = [\"t.h5\", \"t.h5\"]\nzip = [\"traces\", \"budgets\"]\n").steps.size() == 2);
}

TEST_CASE_TEMPLATE("every input of a cell changes its key", Inputs, sweep::CellInputs, sweep::MeasureInputs) {
  const int members = testing::number_of_members<Inputs>();
  CHECK(members >= 5);
  CHECK(static_cast<int>(testing::keys_of_changed<Inputs>().size()) == members + 1);
}
