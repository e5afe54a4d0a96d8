// SPDX-License-Identifier: Apache-2.0
// Damages of traces that have sketches of W_O and no probes, against the metric of a replay.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/allocate/allocate.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/replay.hpp>
#include <support/small_trace.hpp>
#include <unit/trace/raw.hpp>

using namespace kvbench;
using namespace kvbench::allocate;
using namespace kvbench::testing;

namespace {

constexpr int prompts = 3;

std::string at(int prompt) { return "/prompts/" + std::to_string(prompt); }

/// Sets the norms of the residual stream before both layers of the first document.
void set_streams(const std::string& path, float norm, std::int64_t queries) {
  trace::test::RawFile file(path);
  const std::vector<float> norms(static_cast<std::size_t>(queries), norm);
  for (const char* layer : {"/layers/0", "/layers/1"})
    file.replace((at(0) + layer + "/residual_norm").c_str(), H5T_IEEE_F32LE, {norms.size()}, norms.data());
}

/// A trace of 2 layers, of whose documents those from `first` on have lost their probes.
class Sketched {
 public:
  explicit Sketched(int first, bool without_sketches = false) {
    trace::SynthOptions options = small_options();
    options.probes = 2, options.prompts = prompts;
    const std::string path = folder_ / "t.h5";
    trace::synthesize(path, options);
    trace::test::RawFile file(path);
    for (int p = first; p < prompts; ++p) {
      for (const char* name : {"num_probes", "scored_tokens", "probe_seed", "evaluated_in"}) {
        if (H5Aexists_by_name(file.id(), at(p).c_str(), name, H5P_DEFAULT) > 0)
          file.remove_attribute(at(p).c_str(), name);
      }
      for (const char* layer : {"/layers/0", "/layers/1"}) {
        file.remove((at(p) + layer + "/probes").c_str());
        if (without_sketches) file.remove((at(p) + layer + "/output_sketch").c_str());
      }
    }
    path_ = path;
  }
  Damages measure(const replay::ReplayRequest& request, Division by = Division::layer) const {
    std::vector<std::unique_ptr<trace::Reader>> traces;
    traces.push_back(std::make_unique<trace::Reader>(path_));
    return allocate::measure(traces, request, by, {}, {});
  }
  const std::string& path() const { return path_; }

  /// Sets the norm of the residual stream before a layer, of all queries of all documents.
  void set_stream(int layer, float norm) const {
    trace::test::RawFile file(path_);
    const std::vector<float> norms(static_cast<std::size_t>(small_options().num_queries), norm);
    for (int p = 0; p < prompts; ++p)
      file.replace((at(p) + "/layers/" + std::to_string(layer) + "/residual_norm").c_str(), H5T_IEEE_F32LE,
                   {norms.size()}, norms.data());
  }

 private:
  TempFolder folder_;
  std::string path_;
};

replay::ReplayRequest request_of(const char* method) {
  const methods::MethodInfo& info = methods::find_method(method);
  return {.methods = {{&info, info.bind({})}},
          .budgets = {Budget::parse("40%mem"), Budget::parse("60%mem")},
          .seeds = {0, 1},
          .protocol = replay::Protocol::decode};
}

}  // namespace

TEST_CASE("what a trace lacks is said before any of them is replayed") {
  bool replayed = false;
  const replay::ReplayHooks hooks = {.progress = [&](double, Index) { replayed = true; }};
  const Sketched first(0), second(0);
  std::vector<std::unique_ptr<trace::Reader>> traces;
  traces.push_back(std::make_unique<trace::Reader>(first.path()));
  trace::test::RawFile(second.path()).set("/", "model", std::string("another"));
  traces.push_back(std::make_unique<trace::Reader>(second.path()));
  CHECK_THROWS_WITH_AS(measure(traces, request_of("sink"), Division::layer, {}, hooks),
                       doctest::Contains("a plan is for one model"), Error);
  const TempFolder folder;
  trace::SynthOptions decoded = small_options();
  decoded.probes = 2, decoded.num_queries = decoded.num_tokens - decoded.prompt_tokens;
  trace::synthesize(folder / "t.h5", decoded);
  traces.back() = std::make_unique<trace::Reader>(folder / "t.h5");
  CHECK_THROWS_WITH_AS(measure({&traces.back(), 1}, request_of("snapkv"), Division::layer, {}, hooks),
                       doctest::Contains("snapkv runs at no budget: there are no queries inside the context"), Error);
  CHECK_FALSE(replayed);
  traces.pop_back();
  measure(traces, request_of("sink"), Division::layer, {}, hooks);
  CHECK(replayed);
}

TEST_CASE("without probes the damage of a layer is its mean square residual error") {
  const Sketched sketched(0);
  for (const char* method : {"sink", "uniform"}) {
    const replay::ReplayRequest request = request_of(method);
    const Damages damages = sketched.measure(request);
    CHECK_FALSE(damages.probed);
    REQUIRE(damages.documents.size() == prompts);
    const trace::Reader reader(sketched.path());
    const replay::ReplayResults results = replay::replay(reader, request);
    for (std::size_t p = 0; p < prompts; ++p) {
      const std::size_t one[] = {p};
      for (std::size_t l = 0; l < 2; ++l) {
        for (std::size_t e = 0; e < 2; ++e) {
          double squares = 0, count = 0, budget = 0;
          for (const replay::HeadResult& head : results.heads) {
            if (head.place.prompt != p || head.place.layer != l || head.place.kv_head != 0) continue;
            for (std::size_t c = 0; c < results.configurations.size(); ++c) {
              if (results.configurations[c].budget != e) continue;
              budget = static_cast<double>(head.results[c].budget_tokens);
              for (std::size_t i = 0; i < head.positions.size(); ++i, ++count)
                squares += std::pow(head.results[c].metrics[i][replay::Metric::residual_err], 2);
            }
          }
          REQUIRE(squares > 0);
          CHECK(damages.kept[2 * l + e] * static_cast<double>(reader.info().prompts[p].prompt_tokens) ==
                doctest::Approx(budget));
          const Plan plan(2, e);
          replay::ProbeSums sums = sums_of(damages, p, plan);
          for (std::size_t k = 0; k < sums.sums.size(); ++k) {
            if (k / (sums.sums.size() / 2) != l) sums.sums[k] = 0;
          }
          CHECK(damages.of({&sums, 1}).mean == doctest::Approx(squares / count).epsilon(1e-5));
        }
      }
      CHECK(choices_of(damages, one).damage.size() == 4);
    }
  }
}

TEST_CASE("an entry costs what it costs on the document where it costs most") {
  const TempFolder folder;
  const auto costs_of = [&](std::vector<std::int64_t> tokens) {
    std::vector<std::unique_ptr<trace::Reader>> traces;
    for (const std::int64_t n : tokens) {
      trace::SynthOptions options = small_options();
      options.probes = 2, options.num_tokens = options.num_queries = n, options.prompt_tokens = n - 12;
      const std::string path = folder / (std::to_string(n) + ".h5");
      trace::synthesize(path, options);
      set_streams(path, 1e6F, n);  // no error is large
      traces.push_back(std::make_unique<trace::Reader>(path));
    }
    return allocate::measure(traces, request_of("sink"), Division::layer, {}, {}).cost;
  };
  const std::vector<std::int64_t> one = costs_of({40}), other = costs_of({47});
  std::vector<std::int64_t> most;
  for (std::size_t i = 0; i < one.size(); ++i) most.push_back(std::max(one[i], other[i]));
  CHECK(one != other);
  CHECK(costs_of({40, 47}) == most);
  CHECK(costs_of({47, 40}) == most);
}

TEST_CASE("a plan from residual errors adds up the layers' squares") {
  const Damages damages = Sketched(0).measure(request_of("sink"));
  const Allocation found = allocate::allocate(damages, Budget::parse("60%mem"));
  const replay::ProbeSums sums = sums_of(damages, 0, found.equal->plan);
  CHECK(damages.of({&sums, 1}).mean == doctest::Approx((std::pow(sums.sums[0], 2) + std::pow(sums.sums[1], 2)) / 2));
}

// Twelve scored tokens are cut into eight pieces behind every 12 / 8 of them.
TEST_CASE("the damage of a piece comes from the errors at its scored tokens") {
  constexpr std::size_t piece_of[] = {0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7}, scored = std::size(piece_of), R = 2, dv = 6;
  const Sketched probed(prompts);
  const replay::ReplayRequest request = request_of("sink");
  const Damages damages = probed.measure(request);
  REQUIRE(damages.documents[1].pieces == 8);
  const trace::Reader reader(probed.path());
  const trace::PromptInfo& prompt = reader.info().prompts[1];
  const replay::ReplayResults results = replay::replay(reader, request, {.keep_raw = true, .keep_exact = true});
  std::vector<double> expected(8 * R);
  for (const replay::HeadResult& head : results.heads) {
    if (head.place.prompt != 1 || head.layer != 0) continue;
    const replay::RawResult& raw = *head.results[0].raw;
    for (std::size_t row = 0; row < 2 * scored; ++row) {
      const std::vector<float> gradients = reader.read_head(prompt, prompt.layers[0], trace::Array::probes,
                                                            2 * head.place.kv_head + static_cast<Index>(row / scored));
      for (std::size_t r = 0; r < R; ++r) {
        for (std::size_t c = 0; c < dv; ++c)
          expected[piece_of[row % scored] * R + r] += gradients[(r * scored + row % scored) * dv + c] *
                                                      (double{raw.output[row * dv + c]} - raw.exact[row * dv + c]);
      }
    }
  }
  REQUIRE(damages.documents[1].sums[0].size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(damages.documents[1].sums[0][i] == doctest::Approx(expected[i]).epsilon(1e-3));
}

TEST_CASE("heads of a layer have damages that add up to its own, and no residual errors") {
  const Sketched probed(prompts);
  const Damages layers = probed.measure(request_of("sink")), heads = probed.measure(request_of("sink"), Division::head);
  const std::size_t each = heads.places.size() / layers.places.size();
  REQUIRE(each > 1);
  for (std::size_t p = 0; p < prompts; ++p) {
    const replay::ProbeSums of_layers = sums_of(layers, p, Plan(layers.places.size(), 0));
    const replay::ProbeSums of_heads = sums_of(heads, p, Plan(heads.places.size(), 0));
    const std::size_t numbers = of_layers.sums.size() / layers.places.size();
    for (std::size_t i = 0; i < of_layers.sums.size(); ++i) {
      double sum = 0;
      for (std::size_t h = 0; h < each; ++h) sum += of_heads.sums[(i / numbers * each + h) * numbers + i % numbers];
      CHECK(sum == doctest::Approx(of_layers.sums[i]));
    }
  }
  CHECK(contains(message_of<Error>([&] { Sketched(0).measure(request_of("sink"), Division::head); }),
                 "sketches of W_O give the error of all heads of a layer together"));
}

// Layer 0 reads a stream that is far smaller than what its attention adds, layer 1 one that is far larger: errors are
// as large as those of the attention output in layer 0 and nothing in layer 1.
TEST_CASE("an entry has no place in a layer where its error is a large part of the stream") {
  for (const int first : {0, prompts}) {
    CAPTURE(first);
    const Sketched trace(first);
    trace.set_stream(0, 1e-6F), trace.set_stream(1, 1e6F);
    for (const Division by : {Division::layer, Division::head}) {
      if (first == 0 && by == Division::head) continue;  // without probes
      replay::ReplayRequest request = request_of("sink");
      const methods::MethodInfo& int8 = methods::find_method("int8");
      request.methods.push_back({&int8, int8.bind({})});
      request.budgets = {Budget::parse("30%mem"), Budget::parse("90%mem")};
      const Damages damages = trace.measure(request, by);
      REQUIRE(damages.menu.size() == 3);
      const trace::Reader reader(trace.path());
      const replay::ReplayResults results = replay::replay(reader, request);
      std::size_t outside = 0;
      for (std::size_t place = 0; place < damages.places.size(); ++place) {
        for (std::size_t e = 0; e < 3; ++e) {
          double squares = 0, count = 0;
          for (const replay::HeadResult& head : results.heads) {
            if (head.layer != damages.places[place].layer || head.place.kv_head != 0) continue;
            for (std::size_t c = 0; c < results.configurations.size(); ++c) {
              const replay::Configuration& of = results.configurations[c];
              if (results.methods[of.method].name != damages.menu[e].method.info->name ||
                  results.budgets[of.budget] != damages.menu[e].budget)
                continue;
              for (std::size_t i = 0; i < head.positions.size(); ++i, ++count)
                squares += std::pow(head.results[c].metrics[i][replay::Metric::stream_err], 2);
            }
          }
          REQUIRE(count > 0);
          const bool large = std::sqrt(squares / count) > 0.3;
          CHECK((damages.cost[place * 3 + e] < 0) == large);
          outside += large;
        }
      }
      const std::size_t heads = damages.places.size() / 2;
      CHECK(outside == (damages.layers_outside(0).size() + damages.layers_outside(1).size()) * heads);  // int8: none
      CHECK(damages.layers_outside(0) == std::vector<std::int64_t>{0});
      CHECK(damages.layers_outside(2).empty());
      // No plan has it there, and equal budgets have it nowhere.
      const Allocation found = allocate::allocate(damages, Budget::parse("90%mem"));
      for (std::size_t place = 0; place < heads; ++place) CHECK(found.plan.plan[place] > 0);
      CHECK(contains(message_of<Error>([&] { allocate::allocate(damages, Budget::parse("30%mem")); }),
                     "as far as their damage can be predicted"));
    }
  }
}

TEST_CASE("documents of which some have probes, or none has sketches, have no common damage") {
  const auto refusal = [](const Sketched& trace) {
    return message_of<Error>([&] { trace.measure(request_of("sink")); });
  };
  CHECK(contains(refusal(Sketched(1)), "prompt '1' has no probes, and other documents have some"));
  CHECK(contains(refusal(Sketched(0, true)), "prompt '0' has neither probes nor sketches of W_O"));
}
