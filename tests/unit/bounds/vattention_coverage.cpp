// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/vattention/coverage.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/stages/wrapped_cache.hpp>

#include <unit/bounds/judged.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::testing;

namespace {

/// Queries of 1 to keys with the quantiles of a normal law: exp(logit) has 1.3 times its mean as deviation.
Subject normal_logits() {
  std::vector<float> keys;
  for (int j = 0; j < 1024; ++j) keys.push_back(static_cast<float>(normal_quantile((j * 389 % 1024 + 0.5) / 1024)));
  return make_subject({.name = "normal",
                       .keys = keys,
                       .values = std::vector<float>(1024, 1),
                       .queries = std::vector<float>(8, 1),
                       .d = 1,
                       .dv = 1},
                      cpu());
}

/// Changes the weights [L, width] of a table; 1 is that of an exact token, and NaN takes an entry away.
using Change = std::function<void(std::vector<float>& weights)>;

/// A cache that answers by changed weights.
class Faulty : public methods::WrappedCache {
 public:
  Faulty(std::unique_ptr<methods::CompressedCache> cache, Change change, Backend& backend)
      : WrappedCache(std::move(cache), {}), change_(std::move(change)), backend_(backend) {}

  methods::EntryTables entries(const methods::QueryBlock& queries) const override {
    methods::EntryTables tables = cache().entries(queries);
    for (methods::EntryTable& table : tables) {
      if (!table.weight_den.present()) continue;
      std::vector<float> weights = backend_.read(table.weight_den);
      std::vector<std::int32_t> ids = backend_.read(table.ids);
      change_(weights);
      for (std::size_t s = 0; s < weights.size(); ++s) {
        if (std::isnan(weights[s])) ids[s] = -1, weights[s] = 0;
      }
      table.weight_den = backend_.adopt(std::move(weights), table.ids.rows(), table.ids.cols());
      table.ids = backend_.adopt(std::move(ids), table.ids.rows(), table.ids.cols());
    }
    return tables;
  }

 private:
  Change change_;
  Backend& backend_;
};

/// vAttention with eps = delta = 0.1, whose tables are changed.
MethodUnderTest changed(const Change& change) {
  const auto right = registered_method(
      "vattention", {{"samples", "beyond"}, {"eps", "0.1"}, {"delta", "0.1"}, {"base", "0.01"}, {"repeats", "each"}});
  return [=](const methods::HeadPrompt& head, Backend& backend) -> methods::MakeCache {
    return [=, make = right(head, backend), &backend](Index budget, std::uint32_t seed) {
      return std::make_unique<Faulty>(make(budget, seed), change, backend);
    };
  };
}

Change of_samples(std::function<float(float weight)> change) {
  return [=](std::vector<float>& weights) {
    for (float& w : weights) w = w > 1 ? change(w) : w;
  };
}

}  // namespace

// Keys of zero have equal shares: 8 of 32 tokens give a quarter of D, and all of it with the weight 4.
TEST_CASE("errors of a denominator are those of its entries") {
  const Subject subject = make_subject({.name = "test",
                                        .keys = std::vector<float>(32, 0),
                                        .values = std::vector<float>(32, 1),
                                        .queries = {1, 2},
                                        .d = 1,
                                        .dv = 1},
                                       ref());
  const auto errors_of = [&](const MethodUnderTest& method) { return DenominatorErrors(subject, method, ref())(8, 0); };
  CHECK(errors_of(registered_method("sink", {{"reposition", "false"}})) == std::vector<double>{0.75, 0.75});
  CHECK(errors_of(registered_method("uniform"))[0] == doctest::Approx(0));
}

// For eps = 0.1 the samples are those of a quarter of the deviation that 0.2 allows; for 0.8 they are a first sample of
// about 10, whose deviation is 1.3 / sqrt 10 of what is not exact.
TEST_CASE("the coverage of vattention is judged, and too few samples are found") {
  const Subject subject = normal_logits();
  CheckRun run(60);
  const auto row_with = [&](const char* eps) {
    const auto method = registered_method(
        "vattention", {{"samples", "beyond"}, {"eps", eps}, {"delta", "0.1"}, {"base", "0.01"}, {"repeats", "each"}});
    return run([&](CheckContext& context) { check_coverage(context, "test", 0.2, 0.1, method); }, &subject).front();
  };
  const CheckRow right = row_with("0.1"), wrong = row_with("0.8");
  CHECK(right.verdict == Verdict::supported);
  CHECK(wrong.verdict == Verdict::contradicted);
  CHECK(wrong.measured > 0.1);
  CHECK(right.units == 480);
}

// The samples stand for nine tenths of D: a weight that is a quarter too large is an error of 0.2 and more.
TEST_CASE("faults in the weights of vattention's samples contradict its coverage") {
  const Subject subject = normal_logits();
  CheckRun run(20);
  const auto verdict = [&](const Change& change) {
    return run([&](CheckContext& context) { check_coverage(context, "test", 0.2, 0.1, changed(change)); }, &subject)
        .front()
        .verdict;
  };
  CHECK(verdict([](auto&) {}) == Verdict::supported);
  CHECK(verdict(of_samples([](float) { return 1.0F; })) == Verdict::contradicted);           // samples are tokens
  CHECK(verdict(of_samples([](float w) { return 1.4F * w; })) == Verdict::contradicted);     // size counts too many
  CHECK(verdict(of_samples([](float) { return std::nanf(""); })) == Verdict::contradicted);  // no samples
  CHECK(verdict([](std::vector<float>& weights) {                                            // every second one is lost
          for (std::size_t s = 0; s < weights.size(); s += 2) weights[s] = std::nanf("");
        }) == Verdict::contradicted);
}
