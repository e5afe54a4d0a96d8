// SPDX-License-Identifier: Apache-2.0
// Exact attention in fp64 by hand; the row `exact` shows faults of the exact pass; its metrics are those of a sample.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/answer/configuration_run.hpp>
#include <kvbench/replay/exact/fp64_attention.hpp>
#include <kvbench/replay/measure/mass_ceiling.hpp>
#include <kvbench/replay/records/record.hpp>

#include <support/small_trace.hpp>
#include <unit/trace/sample.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// The configuration `exact` on the first head of the small trace, and the exact pass that it was measured against.
struct Measured {
  ConfigurationResult result;
  std::vector<float> pass;
};

/// `fault` changes the head that the exact pass sees, and nothing else.
Measured measure_exact(const std::function<void(Head&)>& fault) {
  const SmallTrace trace;
  const MethodInfo& exact = find_method("exact");
  ReplayRequest request = request_of({&exact}, 5);
  request.protocol = Protocol::prefill;
  const trace::TraceInfo& info = trace.reader().info();
  const ReplayPlan plan = make_plan(info, request);
  const std::vector<Head> heads = {load_head(trace.reader(), plan.prompts[0], {0, 0, 0}, ref())};
  std::vector<NoiseFloor> floors = {{heads[0], info.prompts[0].layers[0]}};

  Head seen = heads[0];
  fault(seen);
  std::vector<TokenId> window;  // the tokens after the context, which the harness keeps
  for (TokenId t = 28; t < 40; ++t) window.push_back(t);
  std::vector<HeadBlock> blocks;
  blocks.emplace_back(seen, 0, seen.queries_per_head(), window, ref());

  Measured measured{.pass = blocks[0].exact.out};
  ConfigurationRun run(exact.prepare(std::vector{heads[0].prompt}, exact.bind({}), ref())(5, 0),
                       {.noise_floors = floors, .keep_raw = true}, heads, {&measured.result}, ref());
  run.start(blocks);
  const QueryRun all = run.advance(blocks[0].exact.block.positions, ref());
  run.collect(blocks, all, ref());
  run.answer(blocks[0], all, 0, nullptr, ref());
  run.finish();
  return measured;
}

double mean_error(const ConfigurationResult& result) {
  double sum = 0;
  for (std::size_t row = 0; row < result.metrics.size(); ++row) sum += metric(result, row, Metric::rel_err);
  return sum / static_cast<double>(result.metrics.size());
}

/// 40 evaluated queries of each query head.
trace::SynthOptions many_queries() {
  trace::SynthOptions options = small_options();
  options.num_tokens = options.num_queries = 80;
  options.prompt_tokens = 40;
  return options;
}

}  // namespace

TEST_CASE("exact attention of one query in fp64, by hand") {
  // Logits 0 and ln 3: weights 1/4 and 3/4.
  const std::vector<float> keys = {0, 1, 5}, values = {4, -4, 8, 0, 100, 100};
  const Fp64Attention two = fp64_attention(std::vector<float>{1}, keys, values, 0, 2, std::log(3.0));
  REQUIRE(two.out.size() == 2);
  CHECK(two.out[0] == Approx(7).epsilon(1e-15));
  CHECK(two.out[1] == Approx(-1).epsilon(1e-15));
  CHECK(two.log_sum_exp == Approx(std::log(4.0)).epsilon(1e-15));
  const Fp64Attention one = fp64_attention(std::vector<float>{1}, keys, values, 1, 2, std::log(3.0));
  CHECK(one.out == std::vector<double>{8, 0});
  CHECK(one.log_sum_exp == Approx(std::log(3.0)).epsilon(1e-15));
}

TEST_CASE("logits sum over all dimensions, in fp64") {
  // <q, k> = 1 + 2 + .. + 9 + 10 * 2^-30 for d = 10; the last term is lost in fp32.
  std::vector<float> query, key(10, 1);
  for (int c = 1; c < 10; ++c) query.push_back(static_cast<float>(c));
  query.push_back(10);
  key[9] = 0x1p-30f;
  const Fp64Attention one = fp64_attention(query, key, std::vector<float>{1}, 0, 1, 2);
  CHECK(one.log_sum_exp == 2 * (45 + 10 * 0x1p-30));
}

TEST_CASE("the row exact shows a fault of the exact pass, which an answer from its logits does not show") {
  const double healthy = mean_error(measure_exact([](Head&) {}).result);
  CHECK(healthy < 1e-6);
  const auto scale = [](Head& head) { head.tokens.scale *= 1.001f; };
  const auto next = [](Head& head) {
    for (std::int32_t& p : head.positions) p = std::min(p + 1, 39);
  };
  const auto window = [](Head& head) { head.window = 25; };
  for (const std::function<void(Head&)>& fault : {std::function<void(Head&)>(scale), {next}, {window}}) {
    const Measured faulty = measure_exact(fault);
    CHECK(mean_error(faulty.result) > 1e-4);
    CHECK(mean_error(faulty.result) < 1);
  }
  const Measured scaled = measure_exact(scale);
  for (std::size_t k = 0; k < scaled.pass.size(); ++k)
    CHECK(std::abs(scaled.result.raw->output[k] - scaled.pass[k]) < 1e-5f);
}

/// Replays a method where layer 1 has another scale than layer 0, and a window of 9 tokens.
ReplayResults replay_with_window(const char* method, ReplayRequest request) {
  const SmallTrace trace;
  trace::TraceInfo info = trace.reader().info();
  info.prompts[0].layers[1].scale *= 2;
  info.prompts[0].layers[1].window = 9;
  const TempFolder folder;
  trace::Writer writer(folder / "layers.h5", info);
  trace::test::for_each_head(
      info, [&](std::size_t p, std::size_t l, trace::Array array, std::int64_t head, const trace::Shape&) {
        const trace::PromptInfo& prompt = trace.reader().info().prompts[p];
        writer.write_rows(p, l, array, head, 0, trace.reader().read_head(prompt, prompt.layers[l], array, head));
      });
  writer.commit();
  request.methods = request_of({&find_method(method)}, 5).methods;
  ReplayResults results = replay::replay(trace::Reader(folder / "layers.h5"), request, serial);
  REQUIRE(results.heads.size() == 4);
  return results;
}

// A format that answered from tokens behind the window would be as far from exact attention as these are.
TEST_CASE("a format answers from the last tokens of a sliding window, and holds no others") {
  ReplayRequest request = request_of({}, 5);
  request.budgets = {Budget::parse("100%mem")};
  for (const HeadResult& head : replay_with_window("int8", request).heads) {
    const ConfigurationResult& result = head.results[0];
    REQUIRE_MESSAGE(result.status == Status::ok, result.reason);
    CHECK(mean_error(result) < 0.02);
    CHECK(head.windowed == (head.layer != 0));
    if (head.windowed) CHECK(result.bytes.full == 9 * 2 * (8 + 6));
    CHECK(result.bytes.of(CostKind::memory) < 0.8 * result.bytes.full);
  }
}

// Of two layers one has another scale and a window, which the fp64 recomputation must take from the same layer.
TEST_CASE("the row exact is at the noise floor in each of several layers that differ") {
  const ReplayResults results = replay_with_window("exact", request_of({}, 5));
  for (const HeadResult& head : results.heads) {
    REQUIRE_MESSAGE(head.results[0].status == Status::ok, head.results[0].reason);
    CHECK(mean_error(head.results[0]) < 1e-6);
  }
}

TEST_CASE("the sample is evenly spaced and ends with the last query") {
  const SmallTrace trace(many_queries());
  const trace::TraceInfo& info = trace.reader().info();
  const ReplayPlan plan = make_plan(info, request_of({&find_method("exact")}, 5));
  Head head = load_head(trace.reader(), plan.prompts[0], {0, 0, 0}, ref());
  for (const Index queries : {1, 15, 16, 17, 40}) {
    head.positions.resize(static_cast<std::size_t>(queries));
    const NoiseFloor floor(head, info.prompts[0].layers[0]);
    std::vector<Index> sample;
    for (Index i = 0; i < queries; ++i) {
      if (floor.samples(i)) sample.push_back(i);
    }
    CHECK(std::ssize(sample) == std::min<Index>(queries, 16));
    CHECK(sample.back() == queries - 1);
    for (std::size_t k = 1; k < sample.size(); ++k) CHECK(sample[k] - sample[k - 1] <= queries / 16 + 1);
  }
}

TEST_CASE("metrics of exact are those of the sample, and all its queries have outputs") {
  const SmallTrace trace(many_queries());
  const ReplayResults results = replay::replay(trace.reader(), request_of({&find_method("exact")}, 5), serial);
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult& result = head.results[0];
    REQUIRE(result.metrics.size() == 2 * 40);
    std::size_t measured = 0;
    for (std::size_t row = 0; row < result.metrics.size(); ++row) {
      const bool sampled = !std::isnan(metric(result, row, Metric::rel_err));
      measured += sampled;
      for (const Metric one : {Metric::log_z_err, Metric::recall, Metric::mass_err})
        CHECK(std::isnan(metric(result, row, one)) == !sampled);
      const Arrays arrays(trace.reader(), head.place.layer, head.place.kv_head);
      const auto g = static_cast<Index>(row / 40);
      const Index t = head.positions[row % 40];
      const TermAnswer exact = attend_to(arrays, g, t, tokens_between(0, t + 1));
      for (std::size_t c = 0; c < 6; ++c)
        CHECK(result.raw->output[row * 6 + c] == Approx(exact.out[c]).epsilon(1e-4).scale(1));
    }
    CHECK(measured == 2 * 16);
  }
  Index rows = 0, without = 0;
  for (const Record& record : summarize(results, Grain::query)) {
    if (!record.layer) CHECK(record.query_rows == 2 * 4 * 16);  // layers, query heads
    if (!record.query) continue;
    ++rows, without += record.query_rows == 0;
    CHECK(std::isnan(record.of(Metric::rel_err).mean) == (record.query_rows == 0));
    CHECK(contains(record.reason, "sample") == (record.query_rows == 0));
  }
  CHECK(rows == 2 * 4 * 40);
  CHECK(without == 2 * 4 * 24);
}

namespace {

/// Two query heads over five tokens, of which the first four are the context.
Head head_of_four() {
  Head head;
  head.group = 2;
  head.map.middle = 4;
  return head;
}

/// One query of each query head: masses 1, 16, 4, 2, 8 and 8, 2, 4, 16, 1, of 31.
ExactBlock block_of_two_rows() {
  std::vector<float> shares;
  for (const double mass : {1, 16, 4, 2, 8, 8, 2, 4, 16, 1}) shares.push_back(static_cast<float>(mass / 31));
  ExactBlock exact;
  exact.block.positions = {4};
  exact.block.scores = ref().adopt(std::vector<float>(10), 2, 5);
  exact.shares = ref().on_host(ref().adopt(std::move(shares), 2, 5));
  return exact;
}

}  // namespace

// Sums over the query heads: 9, 18, 8, 18 in the context and 9 behind it, of 62.
TEST_CASE("the ceiling of mass is that of the largest column sums") {
  ContextMass mass(head_of_four());
  mass.add(block_of_two_rows());
  CHECK(mass.ceiling(std::nullopt, 0) == Approx(9.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 1) == Approx(27.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 2) == Approx(45.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 3) == Approx(54.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 4) == Approx(1));
  CHECK(mass.ceiling(0, 1) == Approx(24.0 / 31));  // a set of its own: token 1, and 8 behind the context
  CHECK(mass.ceiling(1, 2) == Approx(25.0 / 31));  // tokens 3 and 0, and 1 behind it
}

TEST_CASE("blocks of queries add up to one ceiling") {
  ContextMass mass(head_of_four());
  mass.add(block_of_two_rows());
  ExactBlock other = block_of_two_rows();
  other.shares = ref().on_host(ref().adopt(std::vector<float>{0, 0, 1, 0, 0, 0, 0, 1, 0, 0}, 2, 5));
  mass.add(other);
  // 9, 18, 70, 18 and 9 of 124: token 2 is now the best.
  CHECK(mass.ceiling(std::nullopt, 1) == Approx(79.0 / 124));
}

TEST_CASE("a ceiling holds for sets that lose tokens of the context, not for sets that gain some") {
  const auto kept_of = [&](std::vector<std::vector<TokenId>> steps) {
    ShrinkingSets sets(head_of_four());
    for (std::vector<TokenId>& ids : steps) sets.add(host_entries(ids_table(ref(), std::move(ids)), 1, ref()));
    return sets.kept(1);
  };
  CHECK(kept_of({{0, 2}}) == 2);
  CHECK(kept_of({{0, 2, 4}, {2, 4}}) == 2);  // 4 is behind the context
  CHECK(kept_of({{0}, {0, 4}}) == 1);
  CHECK_FALSE(kept_of({{0, 2}, {0, 1}}));
  CHECK_FALSE(kept_of({}));
}

TEST_CASE("a ceiling applies to plain tokens that all queries share") {
  const auto sets_of = [&](const EntryTables& tables) {
    ShrinkingSets sets(head_of_four());
    sets.add(host_entries(tables, 1, ref()));
    return sets;
  };
  EntryTables weighted = ids_table(ref(), {0, 1});
  weighted[0].weight_num = weighted[0].weight_den = ref().adopt(std::vector<float>{2, 1}, 1, 2);
  CHECK_FALSE(sets_of(weighted).kept(0));
  EntryTables per_query = ids_table(ref(), {0, 1});
  per_query[0].per_query = true;
  CHECK_FALSE(sets_of(per_query).kept(0));
  const EntryTables own = {{.per_head = true, .ids = ref().adopt(std::vector<std::int32_t>{0, 1, 2, -1}, 2, 2)}};
  const ShrinkingSets by_head = sets_of(own);
  CHECK(by_head.per_head());
  CHECK(by_head.kept(0) == 2);
  CHECK(by_head.kept(1) == 1);
}
