// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/expand.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/trace/hdf5/output.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::sweep;
using namespace kvbench::testing;

namespace {

/// "t.h5 decode 8 9: sink sink[...]" for each step.
std::vector<std::string> steps(const Sweeps& sweeps, const std::string& lines) {
  std::vector<std::string> out;
  const config::Sweep sweep = sweeps.read("[[run]]\n" + lines);
  for (const StepRequest& step : expand(sweep.runs[0])) {
    std::string text =
        step.trace.path.substr(step.trace.path.size() - 4) + " " + std::string(name_of(step.request.protocol));
    for (const Budget& budget : step.request.budgets) text += " " + budget.text();
    text += ":";
    for (std::size_t m = 0; m < step.request.methods.size(); ++m) {
      text += " " + step.request.methods[m].info->name;
      for (const auto& [method, budget] : step.request.excluded) {
        if (method == m) text += "-" + step.request.budgets[budget].text();
      }
    }
    out.push_back(text);
  }
  return out;
}

using Texts = std::vector<std::string>;
const std::string two =
    "traces = [\"t.h5\", \"u.h5\"]\nprotocol = [\"prefill\", \"decode\"]\nbudgets = [8, 9]\n"
    "methods = [\"sink\", \"exact\"]\n";

}  // namespace

TEST_CASE("lists are combined, the last changing fastest") {
  const Sweeps sweeps;
  CHECK(steps(sweeps, two) == Texts{"t.h5 prefill 8 9: sink exact", "t.h5 decode 8 9: sink exact",
                                    "u.h5 prefill 8 9: sink exact", "u.h5 decode 8 9: sink exact"});
}

TEST_CASE("lists that zip joins advance together, the others are combined") {
  const Sweeps sweeps;
  CHECK(steps(sweeps, two + "zip = [\"traces\", \"budgets\"]\n") ==
        Texts{"t.h5 prefill 8: sink exact", "t.h5 decode 8: sink exact", "u.h5 prefill 9: sink exact",
              "u.h5 decode 9: sink exact"});
  CHECK(steps(sweeps, two + "zip = [\"protocol\", \"budgets\", \"traces\"]\n") ==
        Texts{"t.h5 prefill 8: sink exact", "u.h5 decode 9: sink exact"});
}

TEST_CASE("configurations that exclude matches do not run") {
  const Sweeps sweeps;
  CHECK(steps(sweeps,
              two + "exclude = [{ method = \"exact\", budget = 9 }, { protocol = \"decode\", trace = \"u\" }]\n") ==
        Texts{"t.h5 prefill 8 9: sink exact-9", "t.h5 decode 8 9: sink exact-9", "u.h5 prefill 8 9: sink exact-9"});
  CHECK(steps(sweeps,
              "traces = \"t.h5\"\nmethods = [{ name = \"snapkv\", window = [8, 32] }, \"exact\"]\nbudgets = [8, 9]\n"
              "exclude = [{ window = 8, budget = 8 }, { window = 32 }]\n") == Texts{"t.h5 auto 8 9: snapkv-8 exact"});
}

TEST_CASE("exclusions name methods by files relative to the sweep file, and parameters of these") {
  const Sweeps sweeps;
  AtomicFile file(sweeps.folder / "s.h5");
  trace::h5::write_file(file, [](const trace::h5::Object& root) {
    root.set("kvbench_scores", std::string("1.0"));
    root.set("trace_sha256", std::string(64, 'c'));
    const trace::h5::Object prompt = root.create_group("prompts").create_group("0");
    trace::h5::write(prompt, "0", std::vector<float>(56, 1), {2, 28});
  });
  sweeps.write(
      "model = \"m\"\nmodel_layers = 1\ntraces = [\"ab\"]\n[[plans]]\nbudget = \"25%mem\"\n"
      "layers = [{ layer = 0, method = \"h2o\", budget = \"25%mem\" }]\n",
      "p.toml");
  // What is left, as its settings without the digest of the file; `h2o` stays always.
  const auto left = [&](const std::string& exclusion) {
    const config::Sweep sweep = sweeps.read(
        "[[run]]\ntraces = \"t.h5\"\nbudgets = 8\nmethods = [\"h2o\", \"plan:p.toml\", \"scores:s.h5\", "
        "{ name = \"scores:s.h5\", sinks = 2, recent = 9, scope = \"model\" }]\nexclude = [" +
        exclusion + "]\n");
    Texts out;
    const std::vector<StepRequest> all = expand(sweep.runs[0]);
    for (const MethodChoice& one : all[0].request.methods) {
      const std::string &name = one.info->name, &text = one.params.text();
      const std::size_t settings = text.find(';');
      out.push_back(name.substr(0, name.find(':')) + (settings == text.npos ? "" : text.substr(settings)));
    }
    return out;
  };
  const std::string other = "scores;scope=model;sinks=2;recent=9";
  CHECK(left("{ method = \"plan:p.toml\" }") == Texts{"h2o", "scores", other});
  CHECK(left("{ method = \"plan:./x/../p.toml\" }") == Texts{"h2o", "scores", other});
  CHECK(left("{ method = \"scores:s.h5\" }") == Texts{"h2o", "plan"});
  CHECK(left("{ method = \"scores:s.h5\", scope = \"model\" }") == Texts{"h2o", "plan", "scores"});
  CHECK(left("{ sinks = 2, recent = 9 }") == Texts{"h2o", "plan", "scores"});
  CHECK(left("{ method = \"scores:s.h5\", sinks = 0 }") == Texts{"h2o", "plan", other});  // the default
}

TEST_CASE("an exclusion names a budget in any words") {
  const Sweeps sweeps;
  for (const char* budget : {"\"25%\"", "\"0.25\"", "\"25.0 %\""}) {
    CAPTURE(budget);
    CHECK(steps(sweeps,
                std::string("traces = \"t.h5\"\nmethods = \"sink\"\nbudgets = [\"25%\", 9]\nexclude = [{ budget = ") +
                    budget + " }]\n") == Texts{"t.h5 auto 25% 9: sink-25%"});
  }
}

TEST_CASE("an excluded budget has no configuration, and each head is measured once") {
  const Sweeps sweeps;
  const SweepPlan plan = sweeps.plan(
      "[[run]]\ntraces = \"t.h5\"\nprotocol = [\"prefill\", \"decode\"]\nmethods = [\"sink\", \"uniform\"]\n"
      "budgets = [8, 9]\nseeds = 3\nmeasure = \"clusterability\"\n"
      "exclude = { method = \"uniform\", budget = 9, protocol = \"decode\" }\n");
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.steps[0].replay.configurations.size() == 2 + 2 * 3);
  CHECK(plan.steps[1].replay.configurations.size() == 2 + 3);
  CHECK(plan.steps[0].measured.size() == 4);
  CHECK(plan.steps[1].measured.empty());
}

TEST_CASE("budgets in bytes become tokens of the trace") {
  const Sweeps sweeps;  // a key of 8 and a value of 6 numbers of 2 bytes: 28 bytes per token
  const SweepPlan plan = sweeps.plan("[[run]]\ntraces = \"t.h5\"\nmethods = \"sink\"\nbudgets = [\"280B\"]\n");
  CHECK(budget_tokens(plan.steps[0].replay.prompts[0], plan.steps[0].request.budgets[0], false) == 10);
}
