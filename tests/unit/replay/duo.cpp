// SPDX-License-Identifier: Apache-2.0
// duo@kvpress ranks the heads of all layers of the text that it is calibrated on, whichever layers are replayed.
#include <algorithm>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/methods/stages/coming_queries.hpp>
#include <kvbench/replay/plan/calibration.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr Index layers = 4, heads = 2, context = 28, streamed = 5;

/// Two prompts of a model with RoPE.
class TurningTrace {
 public:
  TurningTrace() {
    trace::SynthOptions options = small_options();
    options.prompts = 2, options.layers = layers;
    const SmallTrace plain(options);
    trace::TraceInfo info = plain.reader().info();
    info.rope_type = "default";
    for (trace::PromptInfo& prompt : info.prompts)
      for (trace::LayerInfo& layer : prompt.layers) layer.rope_theta = 100;
    trace::Writer writer(folder_ / "turning.h5", info);
    trace::test::for_each_head(
        info, [&](std::size_t p, std::size_t l, trace::Array array, std::int64_t head, const trace::Shape&) {
          const trace::PromptInfo& prompt = plain.reader().info().prompts[p];
          writer.write_rows(p, l, array, head, 0, plain.reader().read_head(prompt, prompt.layers[l], array, head));
        });
    writer.commit();
    reader_ = std::make_unique<trace::Reader>(folder_ / "turning.h5");
  }
  const trace::Reader& reader() const { return *reader_; }

 private:
  trace::test::TempFolder folder_;
  std::unique_ptr<trace::Reader> reader_;
};

ReplayRequest request_for(const TurningTrace& trace, const std::string& budget) {
  const MethodInfo& info = find_method("duo@kvpress");
  ReplayRequest request = request_of({&info}, 1);
  request.methods[0].params = info.bind(std::vector<Assignment>{{"sinks", "2"}, {"recent", "3"}, {"positions", "40"}});
  request.budgets = {Budget::parse(budget)};
  request.prompts = {"0"};
  request.protocol = Protocol::prefill;
  request.calibration = open_calibration(trace.reader().path() + ":1");
  return request;
}

/// The heads of the model from the best score to the lowest, as layer * heads + head.
std::vector<std::size_t> ranking(const Calibration& text) {
  const auto backend = make_backend(serial);
  std::vector<std::pair<float, std::size_t>> order;
  for (Index l = 0; l < layers; ++l)
    for (Index h = 0; h < heads; ++h)
      order.emplace_back(-early_attention(*load_calibration(text, l, h, *backend), "duo@kvpress", 40, *backend),
                         l * heads + h);
  std::ranges::sort(order);
  std::vector<std::size_t> out;
  for (const auto& [score, head] : order) out.push_back(head);
  return out;
}

}  // namespace

// At B tokens per head 8 (B - 5) more than the 5 of each head can be held, 23 by each whole one.
TEST_CASE("duo@kvpress keeps whole the best heads of all layers, as many as the tokens allow") {
  const TurningTrace trace;
  for (const auto& [budget, count] :
       std::vector<std::pair<Index, std::size_t>>{{5, 0}, {7, 0}, {8, 1}, {16, 3}, {25, 6}, {27, 7}, {28, 8}}) {
    CAPTURE(budget);
    const ReplayRequest request = request_for(trace, std::to_string(budget));
    auto whole = ranking(*request.calibration);
    whole.resize(count);
    const ReplayResults results = replay::replay(trace.reader(), request, serial);
    for (std::size_t h = 0; h < results.heads.size(); ++h) {
      const ConfigurationResult& result = results.heads[h].results[0];
      REQUIRE_MESSAGE(result.status == Status::ok, result.reason);
      CHECK(result.kept_tokens == (std::ranges::find(whole, h) != whole.end() ? context : streamed));
      CHECK(result.notes.at(0).text == "calibrated on turning.h5, prompt '1'");
    }
    CHECK(request.calibration->head_scores->known.size() == 1);
  }
}

TEST_CASE("duo@kvpress replays single layers with the heads that are whole among all") {
  const TurningTrace trace;
  ReplayRequest request = request_for(trace, "16");
  auto whole = ranking(*request.calibration);
  whole.resize(3);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    request.layers = {static_cast<std::int64_t>(layer)};
    const ReplayResults results = replay::replay(trace.reader(), request, serial);
    for (std::size_t h = 0; h < heads; ++h)
      CHECK(results.heads[h].results[0].kept_tokens ==
            (std::ranges::find(whole, layer * heads + h) != whole.end() ? context : streamed));
  }
}

TEST_CASE("duo@kvpress holds as many whole heads as a limit of memory allows") {
  const TurningTrace trace;
  for (const double share : {0.25, 0.5, 0.6, 0.9}) {
    CAPTURE(share);
    const ReplayResults results =
        replay::replay(trace.reader(), request_for(trace, fmt::format("{}%mem", 100 * share)), serial);
    double held = 0, full = 0, most = 0;
    for (const HeadResult& head : results.heads) {
      const Bytes& bytes = head.results[0].bytes;
      held += bytes.of(CostKind::memory), full += bytes.full;
      most = std::max(most, bytes.full * (1 - static_cast<double>(streamed) / context));
    }
    CHECK(held <= share * full);
    CHECK(held + most + heads * 4 > share * full);  // one more would not fit
  }
}

TEST_CASE("duo@kvpress says what it lacks") {
  const TurningTrace trace;
  const auto reason = [&](auto change) {
    ReplayRequest request = request_for(trace, "16");
    change(request);
    const ConfigurationResult result = replay::replay(trace.reader(), request, serial).heads[0].results[0];
    CHECK(result.status != Status::ok);
    return result.reason;
  };
  CHECK(contains(reason([](ReplayRequest& r) { r.calibration.reset(); }), "name one with --calibrate"));
  CHECK(contains(reason([](ReplayRequest& r) { r.protect_first = 1; }), "omit --protect"));
  CHECK(contains(reason([](ReplayRequest& r) { r.kv_heads = {1}; }), "omit --kv-heads"));
  CHECK(contains(reason([](ReplayRequest& r) { r.budgets = {Budget::parse("4")}; }), "every head keeps 5 tokens"));
  CHECK(contains(reason([](ReplayRequest& r) { r.budgets = {Budget::parse("10%mem")}; }), "every head keeps 5 tokens"));
}
