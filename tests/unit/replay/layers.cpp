// SPDX-License-Identifier: Apache-2.0
// Methods that see a layer, methods with a plan over layers, and dense layers.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/measure/measurements.hpp>
#include <kvbench/replay/records/figures.hpp>
#include <kvbench/replay/records/results.hpp>

#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

float largest_error(const HeadResult& head, std::size_t c) {
  float largest = 0;
  for (const MetricRow& row : head.results.at(c).metrics) largest = std::max(largest, row[Metric::rel_err]);
  return largest;
}

}  // namespace

TEST_CASE("a layer method gets all heads at once, other methods one head each") {
  const SmallTrace trace;
  std::vector<std::vector<std::int32_t>> layers;
  MethodInfo layer = fake_shared_layer();
  layer.prepare = [&layers, inner = layer.prepare](std::span<const HeadPrompt> heads, const Params& params,
                                                   Backend& backend) {
    layers.emplace_back();
    for (const HeadPrompt& head : heads) layers.back().push_back(head.head.value);
    return inner(heads, params, backend);
  };
  const MethodInfo head = fake_two_sets();
  const ReplayResults results = replay::replay(trace.reader(), request_of({&head, &layer}, 5), serial);
  CHECK(layers == std::vector<std::vector<std::int32_t>>{{0, 1}, {0, 1}});
  REQUIRE(results.heads.size() == 4);
  for (std::size_t l = 0; l < 2; ++l) {
    const ConfigurationResult &a = results.heads[2 * l].results[1], &b = results.heads[2 * l + 1].results[1];
    REQUIRE(a.status == Status::ok);
    // Heads share the budget: 5 tokens of the context each on average, and the same decoded tokens in addition.
    CHECK(a.kept_tokens + b.kept_tokens == doctest::Approx(2 * (5 + 6.5)));
  }
}

TEST_CASE("a planned method gets the budget of its layer") {
  const SmallTrace trace;
  const MethodInfo info = fake_planned();  // 2 * 6 * (l + 1) / 3
  const ReplayResults results = replay::replay(trace.reader(), request_of({&info}, 6), serial);
  REQUIRE(trace.reader().info().num_layers == 2);
  for (const HeadResult& head : results.heads) {
    const Index budget = head.place.layer == 0 ? 4 : 8;
    REQUIRE(head.results[0].status == Status::ok);
    CHECK(head.results[0].budget_tokens == budget);
    CHECK(head.results[0].kept_tokens == doctest::Approx(static_cast<double>(budget) + 6.5));
  }
}

// Plan of layers 0 and 1: 24 2 / 3 = 16 and 24 4 / 3 = 32, of a context of 28.
TEST_CASE("a plan that gives a layer more than the context is limited to the context") {
  const SmallTrace trace;
  const MethodInfo info = fake_planned();
  const ReplayResults results = replay::replay(trace.reader(), request_of({&info}, 24), serial);
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult& result = head.results[0];
    REQUIRE_MESSAGE(result.status == Status::ok, result.reason);
    CHECK(result.budget_tokens == (head.place.layer == 0 ? 16 : 28));
    CHECK(result.kept_tokens == doctest::Approx((head.place.layer == 0 ? 16 : 28) + 6.5));
  }
}

TEST_CASE("dense layers are exact for every kind of method") {
  const SmallTrace trace;
  const MethodInfo head = fake_two_sets(), layer = fake_shared_layer(), observer = fake_observer();
  ReplayRequest request = request_of({&head, &layer, &observer}, 5);
  request.dense_layers = 1;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  for (const HeadResult& answered : results.heads) {
    for (std::size_t c = 0; c < 3; ++c) {
      CAPTURE(c);
      REQUIRE_MESSAGE(answered.results[c].status == Status::ok, answered.results[c].reason);
      CHECK(answered.results[c].dense == (answered.place.layer == 0));
      if (answered.place.layer == 0) {
        CHECK(largest_error(answered, c) < 1e-5);
      } else {
        CHECK(largest_error(answered, c) > 1e-3);
      }
    }
  }
}

TEST_CASE("layers kept whole count in a budget of bytes") {
  const SmallTrace trace;
  ReplayRequest request = request_of({&methods::find_method("sink")}, 5);
  request.budgets = {Budget::parse("40%mem")};
  request.dense_layers = 1;  // of 2, which hold half of the memory
  const auto results = [&] { return replay::replay(trace.reader(), request, serial); };
  for (const HeadResult& head : results().heads) {
    CHECK(head.results[0].status == Status::infeasible);
    CHECK(head.results[0].reason ==
          "1 of 2 layers are kept whole, which costs 50 % of the full cache; the budget is 40 %");
  }
  request.budgets = {Budget::parse("75%mem")};
  double held = 0, full = 0;
  for (const HeadResult& head : results().heads) {
    REQUIRE_MESSAGE(head.results[0].status == Status::ok, head.results[0].reason);
    held += head.results[0].bytes.of(CostKind::memory), full += head.results[0].bytes.full;
  }
  CHECK(held / full <= 0.75);
  CHECK(held / full > 0.65);
}

// residual_err and stream_err: norms over all heads of a layer, by hand and from the arrays of a trace.

namespace {

HeadResult head_of(std::size_t layer, Index kv_head, std::vector<float> parts) {
  HeadResult head{.place = {0, layer, kv_head}, .layer = static_cast<std::int64_t>(layer), .positions = {7, 8}};
  ConfigurationResult& result = head.results.emplace_back();
  result.metrics.resize(4);
  for (MetricRow& row : result.metrics) row.fill(NAN);
  result.rel_err_fro = {0, 0};
  result.residual = std::move(parts);
  return head;
}

float residual_of(const HeadResult& head, std::size_t row) {
  return head.results[0].metrics[row][Metric::residual_err];
}
float stream_of(const HeadResult& head, std::size_t row) { return head.results[0].metrics[row][Metric::stream_err]; }

}  // namespace

// Errors of two heads at two queries: (3, 0) + (0, 4) has the norm 5, (1, 1) + (-1, -1) is 0. What exact attention adds
// at the first one is (1, 2) + (1, 0), of the norm sqrt(8), beside a stream of norm 1: sqrt(1 + 8) = 3.
TEST_CASE("the parts of the heads of a layer add up before their norm is taken") {
  std::vector<HeadResult> heads = {head_of(0, 0, {3, 0, 1, 2, 1, 1, 9, 9}), head_of(0, 1, {0, 4, 1, 0, -1, -1, 9, 9}),
                                   head_of(1, 0, {6, 8, 0, 0, NAN, NAN, NAN, NAN}),
                                   head_of(1, 1, {0, 0, 0, 0, 1, 1, 1, 1})};
  set_layer_metrics(heads);
  CHECK(residual_of(heads[0], 0) == 5);
  CHECK(residual_of(heads[0], 1) == 0);
  CHECK(residual_of(heads[2], 0) == 10);
  CHECK(std::isnan(residual_of(heads[2], 1)));  // not measured for a head
  CHECK(stream_of(heads[0], 0) == Approx(5.0 / 3));
  CHECK(stream_of(heads[0], 1) == 0);
  CHECK(stream_of(heads[2], 0) == 10);  // attention adds nothing
  CHECK(std::isnan(stream_of(heads[2], 1)));
  for (const HeadResult& head : heads) {
    CHECK(head.results[0].residual.empty());
    CHECK(std::isnan(residual_of(head, 2)));  // the second query head: a query counts once
    if (head.place.kv_head == 1) CHECK(std::isnan(residual_of(head, 0)));
  }
}

TEST_CASE("without a result of one of its heads a layer has no residual error") {
  std::vector<HeadResult> heads = {head_of(0, 0, {3, 0, 0, 0, 1, 1, 0, 0}), head_of(0, 1, {0, 4, 0, 0, -1, -1, 0, 0})};
  heads[1].results[0].status = Status::infeasible;
  set_layer_metrics(heads);
  CHECK(std::isnan(residual_of(heads[0], 0)));
}

// Errors (1, 0, 2) and (0, 3, 0) of two query heads; S of the first head has the rows (1, 0), (5, 5), (0, 1), that of
// the second one (5, 5), (2, -1), (5, 5); |x| = 2. Together (1, 2) + (6, -3) = (7, -1), divided by 2. The exact outputs
// are ones: (6, 6) + (12, 9) = (18, 15), divided by 2.
TEST_CASE("residual_err of a sketch of two heads and three channels") {
  Head head;
  head.group = 2;
  head.positions = {4};
  head.sketch = {.columns = 2, .matrix = {1, 0, 5, 5, 0, 1, 5, 5, 2, -1, 5, 5}, .norms = {2}};
  head.tokens.values = ref().adopt(std::vector<float>(15), 5, 3);
  head.tokens.keys = ref().adopt(std::vector<float>(15), 5, 3);
  head.v_op = head.v_fro = {1};
  ConfigurationResult result;
  Measurements measurements(head, {}, result);
  ExactBlock exact;
  exact.block.positions = {4};
  exact.block.scores = ref().adopt(std::vector<float>(10), 2, 5);
  exact.visible_first = {0}, exact.visible_last = {5};
  exact.out = {1, 1, 1, 1, 1, 1};
  exact.log_sum_exp = {0, 0}, exact.p_norm = {1, 1};
  const HostState answers{.max = {0, 0}, .den = {1, 1}, .num = {2, 1, 3, 1, 4, 1}};
  measurements.add(exact, {0, 1}, HostEntries({}, 1), {}, {answers, answers}, ref());
  REQUIRE(result.residual.size() == 4);
  CHECK(result.residual[0] == Approx(3.5));
  CHECK(result.residual[1] == Approx(-0.5));
  CHECK(result.residual[2] == Approx(9));
  CHECK(result.residual[3] == Approx(7.5));
}

TEST_CASE("residual errors of a replay are those of its outputs, sketches and norms, in rows over heads alone") {
  trace::SynthOptions options = small_options();
  options.probes = 3;
  const SmallTrace trace(options);
  const trace::Reader& reader = trace.reader();
  const trace::TraceInfo& info = reader.info();
  RunOptions how = serial;
  how.keep_raw = how.keep_exact = true;
  const ReplayResults results =
      replay::replay(reader, request_of({&methods::find_method("sink"), &methods::find_method("exact")}, 8), how);
  const std::size_t queries = results.heads[0].positions.size(), dv = static_cast<std::size_t>(info.value_dim);
  double squares = 0, sum = 0;
  for (const HeadResult& first : results.heads) {
    if (first.place.kv_head != 0) continue;
    const trace::PromptInfo& prompt = info.prompts[first.place.prompt];
    const trace::LayerInfo& layer = prompt.layers[first.place.layer];
    const auto columns = static_cast<std::size_t>(layer.output_sketch.value().columns);
    const std::vector<float> norms = reader.read_head(prompt, layer, trace::Array::residual_norm, 0);
    for (std::size_t i = 0; i < queries; ++i) {
      std::vector<double> moved(columns), whole(columns);
      for (const HeadResult& head : results.heads) {
        if (head.place.prompt != first.place.prompt || head.place.layer != first.place.layer) continue;
        const RawResult& raw = head.results[0].raw.value();
        for (Index g = 0; g < info.group(); ++g) {
          const std::vector<float> sketch =
              reader.read_head(prompt, layer, trace::Array::output_sketch, head.place.kv_head * info.group() + g);
          for (std::size_t c = 0; c < dv; ++c) {
            const std::size_t at = (static_cast<std::size_t>(g) * queries + i) * dv + c;
            for (std::size_t k = 0; k < columns; ++k) {
              moved[k] += sketch[c * columns + k] * (double{raw.output[at]} - double{raw.exact[at]});
              whole[k] += sketch[c * columns + k] * double{raw.exact[at]};
            }
          }
        }
      }
      double norm = 0, exact = 0;
      for (const double x : moved) norm += x * x;
      for (const double x : whole) exact += x * x;
      const double before = norms[norms.size() - queries + i], expected = std::sqrt(norm) / before;
      CHECK(first.results[0].metrics[i][Metric::residual_err] == Approx(expected).epsilon(1e-4));
      CHECK(first.results[0].metrics[i][Metric::stream_err] ==
            Approx(std::sqrt(norm) / std::hypot(before, std::sqrt(exact))).epsilon(1e-4));
      squares += expected * expected, sum += expected;
    }
  }
  const std::vector<Record> rows = summarize(results, Grain::query);
  const double count = static_cast<double>(queries) * static_cast<double>(info.num_layers);
  const Record& overall = rows.front();
  REQUIRE(overall.method == "sink");
  CHECK(overall.of(Metric::residual_err).mean == Approx(sum / count).epsilon(1e-4));
  CHECK(overall.of(Metric::residual_err).rms == Approx(std::sqrt(squares / count)).epsilon(1e-4));
  CHECK(figure_of(figure_named("residual_err")).mean(overall) == overall.of(Metric::residual_err).rms);
  for (const Record& row : rows) {
    CAPTURE(row.method);
    if (row.query_head) CHECK(std::isnan(row.of(Metric::residual_err).mean));
    if (!row.query_head && row.method == "exact") CHECK(row.of(Metric::residual_err).max < 1e-4);
  }
}
