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
  const auto refused = [&](const std::string& lines) { return sweeps.plan_refusal(run + lines); };
  CHECK(contains(refused(infinigen + "calibrate = \"t.h5\"\n"), "s.toml:5:13: run 'r' on"));
  CHECK(contains(refused(infinigen + "calibrate = \"t.h5\"\n"),
                 "'calibrate': t.h5, prompt '0' is the text of the evaluated prompt"));
  CHECK(contains(refused(infinigen + "calibrate = \"v.h5:5\"\n"), "has no prompt '5'"));
  CHECK(contains(refused("methods = \"sink\"\ncalibrate = \"v.h5\"\n"), "no method that is replayed calibrates"));
}

TEST_CASE("errors in the plan have run, trace and place") {
  const Sweeps sweeps;
  const auto refused = [&](const std::string& lines) {
    return sweeps.plan_refusal("[[run]]\nname = \"r\"\nmethods = \"sink\"\n" + lines + "\n");
  };
  CHECK(contains(refused(""), "s.toml:1:1: run 'r' has no traces"));
  CHECK(contains(refused("traces = [\"t.h5\", \"v.h5\"]"), "s.toml:4:19: " + (sweeps.folder / "v.h5")));
  CHECK(contains(refused("traces = \"s.toml\""), "s.toml:4:10: "));
  const std::string on = "run 'r' on " + (sweeps.folder / "t.h5") + ": ", traces = "traces = \"t.h5\"\n";
  // With the place of the value at fault, and the keys of the file for the fields of the request.
  const auto refused_with = [&](const std::string& lines, const std::string& place, const std::string& words) {
    CHECK_MESSAGE(contains(refused(traces + lines), "s.toml:" + place + ": " + on + words), refused(traces + lines));
  };
  refused_with("budgets = [8, 29]", "5:11", "'budgets': 29 is larger than the context of 28 tokens");
  refused_with("layers = 7", "5:10", "'layers': the trace has no layer 7");
  refused_with("heads = [0, 2]", "5:9", "'heads': there is no kv head 2");
  refused_with("prompts = \"x\"", "5:11", "'prompts': the trace has no prompt 'x'");
  refused_with("protect = [14, 14]", "5:11", "'protect': 14 + 14 tokens are the whole context");
  refused_with("protect_outside = [14, 14]", "5:19", "'protect_outside': 14 + 14 tokens are the whole context");
  refused_with("protocol = \"prefill\"\nwindow = 40", "6:10", "'window' is 40, which leaves no context");
  refused_with("decoded = \"keep\"\nprotocol = \"stream\"", "5:11",
               "'decoded' is keep, which would leave no tokens to the method");
}

TEST_CASE("the place of an error is that of the key in the run or in [defaults], else that of the run") {
  const Sweeps sweeps;
  CHECK(contains(sweeps.plan_refusal("[defaults]\nlayers = [7]\ntraces = \"t.h5\"\n[[run]]\nmethods = \"sink\"\n"),
                 "s.toml:2:10: run '1' on "));
  CHECK(contains(
      sweeps.plan_refusal("[defaults]\nlayers = [7]\n[[run]]\nmethods = \"sink\"\ntraces = \"t.h5\"\nlayers = 8\n"),
      "s.toml:6:10: run '1' on "));
  // A field that no key sets keeps its name.
  const SweepPlan plan = plan_sweep(sweeps.read("[[run]]\nmethods = \"sink\"\ntraces = \"t.h5\"\n"), {.memory = 1e6});
  CHECK(contains(message_of<Error>([&] { estimate(plan, {}); }),
                 "s.toml:1:1: run '1' on " + (sweeps.folder / "t.h5") + ": a head of 40"));
  CHECK(contains(message_of<Error>([&] { estimate(plan, {}); }), "raise `memory`, or"));
}

TEST_CASE("a run that replays the same heads of a trace twice is refused") {
  const Sweeps sweeps;
  std::filesystem::copy_file(sweeps.folder / "t.h5", sweeps.folder / "copy.h5");
  const std::string run = "[[run]]\nmethods = \"sink\"\nbudgets = [8, 12]\n";
  const auto refused = [&](const std::string& lines) { return sweeps.plan_refusal(run + lines); };
  CHECK(contains(refused("traces = [\"t.h5\", \"u.h5\", \"t.h5\"]\n"), "s.toml:4:27: run '1': "));
  CHECK(contains(refused("traces = [\"t.h5\", \"./t.h5\"]\n"), "are the same trace; name it once"));
  CHECK(contains(refused("traces = [\"t.h5\", \"copy.h5\"]\n"), "copy.h5 are the same trace; name it once"));
  const std::string trace = "traces = \"t.h5\"\n";
  CHECK(
      contains(refused(trace + "protocol = [\"prefill\", \"prefill\"]\n"), "'protocol' names the same protocol twice"));
  CHECK(contains(refused(trace + "protocol = [\"auto\", \"decode\"]\n"), "'protocol' names the same protocol twice"));
  CHECK(contains(refused(trace + "device = [\"cpu\", \"cpu\"]\n"), "'device' names the same device twice"));
  CHECK(contains(refused(trace + "seeds = [3, 3]\n"), "'seeds': 3 is given twice"));
  CHECK(contains(refused(trace + "measure = [\"clusterability\", \"clusterability\"]\n"),
                 "'clusterability' is given twice"));
  CHECK(sweeps.plan(run + trace + "protocol = [\"prefill\", \"decode\"]\n").steps.size() == 2);
  // zip may name a trace for every budget.
  CHECK(sweeps.plan(run + "traces = [\"t.h5\", \"t.h5\"]\nzip = [\"traces\", \"budgets\"]\n").steps.size() == 2);
}

TEST_CASE_TEMPLATE("every input of a cell changes its key", Inputs, sweep::CellInputs, sweep::MeasureInputs) {
  const int members = testing::number_of_members<Inputs>();
  CHECK(members >= 5);
  CHECK(static_cast<int>(testing::keys_of_changed<Inputs>().size()) == members + 1);
}
