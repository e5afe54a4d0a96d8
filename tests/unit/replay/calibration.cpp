// SPDX-License-Identifier: Apache-2.0
// A method receives the same head on another text, never on an evaluated one, and its row names that text.
#include <kvbench/replay/plan/calibration.hpp>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/run/head_memory.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

trace::SynthOptions two_prompts() {
  trace::SynthOptions options = small_options();
  options.prompts = 2;
  return options;
}

/// What a method found in HeadPrompt::calibration.
struct Found {
  std::vector<float> keys;
  std::vector<std::int32_t> observed;
};

/// Keeps token 0.
MethodInfo calibrating(Found& found) {
  MethodInfo info = method_of("calibrating", [&found](const HeadPrompt& head, Index, std::uint32_t, Backend& backend) {
    if (head.calibration) found = {backend.read(head.calibration->keys), head.calibration->observed_positions};
    return std::make_unique<FunctionCache>([&backend](const QueryBlock&) { return ids_table(backend, {0}); });
  });
  info.calibrates_on = CalibratesOn::text;
  return info;
}

/// Prompt 0 on layer 1, kv head 1.
ReplayRequest request_for(const MethodInfo& info) {
  ReplayRequest request = request_of({&info}, 5);
  request.prompts = {"0"};
  request.layers = {1};
  request.kv_heads = {1};
  return request;
}

}  // namespace

TEST_CASE("a method that calibrates receives the same head of the other text, whole") {
  const SmallTrace trace(two_prompts());
  Found found;
  const MethodInfo info = calibrating(found);
  ReplayRequest request = request_for(info);
  const auto note = [&] {
    return replay::replay(trace.reader(), request, serial).heads[0].results[0].notes.at(0).text;
  };
  CHECK(note() == "calibrated on the evaluated context");
  CHECK(found.keys.empty());
  request.calibration = open_calibration(trace.reader().path() + ":1");
  CHECK(note() == "calibrated on small.h5, prompt '1'");
  const trace::PromptInfo& other = trace.reader().info().prompts[1];
  CHECK(found.keys == trace.reader().read_head(other, other.layers[1], trace::Array::keys, 1));
  CHECK(found.observed.size() == 40);  // all queries of the text, those after its context included
  request.dense_layers = 2;
  CHECK(replay::replay(trace.reader(), request, serial).heads[0].results[0].notes.empty());
}

// A published method that takes its statistics from the prompt knows nothing that a deployment would not.
TEST_CASE("what calibrates on the prompt that it compresses has no hindsight, alone, wrapped and composed") {
  const SmallTrace trace(two_prompts());
  Found found;
  MethodInfo info = calibrating(found);
  info.calibrates_on = CalibratesOn::prompt;
  ReplayRequest request = request_for(info);
  CHECK(replay::replay(trace.reader(), request, serial).heads[0].results[0].notes.empty());
  request.calibration = open_calibration(trace.reader().path() + ":1");
  CHECK(replay::replay(trace.reader(), request, serial).heads[0].results[0].notes.at(0).text ==
        "calibrated on small.h5, prompt '1'");
  const auto on = [](const char* name) { return methods::find_method(name).calibrates_on; };
  CHECK(on("expected-attention") == CalibratesOn::prompt);
  CHECK(on("adakv(expected-attention)") == CalibratesOn::prompt);
  CHECK(on("expected-attention+q8_0") == CalibratesOn::prompt);
  CHECK(on("expected-attention+kvquant-nofisher") == CalibratesOn::text);
  CHECK(on("triattention") == CalibratesOn::text);
  CHECK(on("snapkv") == CalibratesOn::nothing);
}

TEST_CASE("a calibration text is a prompt of a trace, the first by default") {
  const SmallTrace trace(two_prompts());
  CHECK(open_calibration(trace.reader().path()).prompt == 0);
  CHECK(open_calibration(trace.reader().path() + ":1").prompt == 1);
  const auto refused = [](const std::string& text) { return message_of<Error>([&] { open_calibration(text); }); };
  CHECK(contains(refused(trace.reader().path() + ":7"), "small.h5 has no prompt '7'."));
  CHECK(contains(refused("missing.h5:0"), "missing.h5"));
}

TEST_CASE("a calibration that cannot serve the replay is refused") {
  const SmallTrace trace(two_prompts());
  Found found;
  const MethodInfo info = calibrating(found);
  const auto refused = [&](const std::string& text, auto change) {
    ReplayRequest request = request_for(info);
    request.calibration = open_calibration(text);
    change(request);
    return message_of<Error>([&] { replay::replay(trace.reader(), request, serial); });
  };
  const auto as_is = [](ReplayRequest&) {};
  CHECK(contains(refused(trace.reader().path(), as_is),
                 "`calibration`: small.h5, prompt '0' is the text of the evaluated prompt '0'"));
  CHECK(contains(refused(trace.reader().path() + ":1", [](ReplayRequest& r) { r.prompts = {}; }),
                 "the evaluated prompt '1'"));

  // The same text in another file.
  trace::SynthOptions options = two_prompts();
  options.prompts = 1;
  const SmallTrace copy(options);
  CHECK(contains(refused(copy.reader().path(), as_is), "is the text of the evaluated prompt '0'"));

  options.head_dim = 4;
  const SmallTrace narrow(options);
  CHECK(contains(refused(narrow.reader().path(), as_is),
                 "and 4 and 6 dimensions of keys and values; the evaluated trace has 2 layers"));

  trace::SynthOptions of_other_model = two_prompts();
  of_other_model.pattern = trace::Pattern::sinks;
  const SmallTrace foreign(of_other_model);
  CHECK(contains(refused(foreign.reader().path() + ":1", as_is),
                 "is of the model 'synthetic-sinks'; the evaluated trace is of 'synthetic-gaussian'"));

  MethodInfo plain = info;
  plain.calibrates_on = CalibratesOn::nothing;
  const auto with_plain = [&](ReplayRequest& r) { r.methods[0].info = &plain; };
  CHECK(contains(refused(trace.reader().path() + ":1", with_plain), "those that do: expected-attention, triattention"));
}

TEST_CASE("the layers that are replayed must be in the calibration text") {
  const SmallTrace trace(two_prompts());
  Found found;
  const MethodInfo info = calibrating(found);
  ReplayRequest request = request_for(info);
  request.calibration = open_calibration(trace.reader().path() + ":1");
  ReplayPlan plan = make_plan(trace.reader().info(), request);
  CHECK_NOTHROW(check_calibration(trace.reader(), plan, request));
  plan.prompts[0].layers = {1, 5};
  CHECK(contains(message_of<Error>([&] { check_calibration(trace.reader(), plan, request); }),
                 "prompt '1' has no layer 5"));
}

// 40 tokens with a key of 8, a value of 6 and column sums of 2 query heads, and 40 queries of 2 heads with 8
// dimensions: 1280 numbers.
TEST_CASE("the memory of a work item counts the head of the calibration text") {
  const SmallTrace trace(two_prompts());
  Found found;
  const MethodInfo info = calibrating(found);
  ReplayRequest request = request_for(info);
  const auto spare = [&] {
    const ReplayPlan plan = make_plan(trace.reader().info(), request);
    return plan_threads(trace.reader().info(), plan, {.threads = 1, .memory = 1e9}).spare;
  };
  const double before = spare();
  request.calibration = open_calibration(trace.reader().path() + ":1");
  CHECK(before - spare() == 4 * 1280);
}
