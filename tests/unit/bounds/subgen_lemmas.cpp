// SPDX-License-Identifier: Apache-2.0
// SubGen's Lemmas 1 and 2: the method is consistent with them, planted faults are violations.
#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

#include <cmath>

#include <kvbench/bounds/subgen/checks.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::testing;

namespace {

using Histories = std::vector<std::vector<TokenId>>;

struct Case {
  Subject subject = subgen_subject();
  SubgenValues values = subgen_values(subject);
  SubgenSetup setup = radius_setup(subject, 0.8, 6, cpu());
  SubgenRunner runner{subject, setup, cpu()};

  Judged judged(const std::function<void(CheckContext&)>& check) const { return {subject, check}; }
  Judged slots(const SlotHistory& history) const {
    return judged([&](CheckContext& context) { check_slots(context, values, std::array<Index, 2>{60, 240}, history); });
  }
  Judged entry_counts(const std::function<void(SubgenSketch&)>& fault) const {
    return judged([&](CheckContext& context) {
      check_entry_counts(context, values, setup.slots, [&](std::uint32_t seed) {
        SubgenSketch sketch = runner.kept(seed);
        fault(sketch);
        return sketch;
      });
    });
  }
  Judged samples(const Sketcher& sketcher) const {
    return judged([&](CheckContext& context) { check_samples(context, setup, sketcher); });
  }
  Judged clusters(const SubgenSetup& faulty) const {
    return judged([&](CheckContext& context) { check_clusters(context, faulty, runner.kept(0)); });
  }
};

/// The random numbers of Algorithm 1, optionally with a wrong probability or shared between slots.
template <class F>
SlotHistory coins(const Case& c, F probability, bool shared) {
  return [&c, probability, shared](std::uint32_t seed, std::span<const Index> times) {
    std::mt19937_64 engine(seed + 1);
    std::uniform_real_distribution<> uniform;
    std::vector<TokenId> held(8, -1);
    Histories history;
    double mu = 0;
    for (Index n = 0; n < c.subject.tokens(); ++n) {
      const double weight = c.values.norms2[static_cast<std::size_t>(n)];
      mu += weight;
      double coin = uniform(engine);
      for (TokenId& slot : held) {
        if (n == 0 || coin < probability(weight, mu, n)) slot = static_cast<TokenId>(n);
        if (!shared) coin = uniform(engine);
      }
      for (const Index time : times) {
        if (time == n + 1) history.push_back(held);
      }
    }
    return history;
  };
}

double right(double weight, double mu, Index) { return weight / mu; }

/// The token at which the weights from `first` on reach a share u of their sum up to `last`.
TokenId quantile_token(const Case& c, double u, Index first, Index last) {
  double total = 0, reached = 0;
  for (Index i = first; i < last; ++i) total += c.values.norms2[static_cast<std::size_t>(i)];
  for (Index i = first; i < last; ++i) {
    reached += c.values.norms2[static_cast<std::size_t>(i)];
    if (reached >= u * total) return static_cast<TokenId>(i);
  }
  return static_cast<TokenId>(last - 1);
}

}  // namespace

TEST_CASE("the method is consistent with the claims") {
  const Case c;
  for (const Check& claim : {subgen_lemma1(), subgen_lemma2()}) {
    const Judged judged = c.judged(claim.run);
    CHECK(judged.none_violated());
    CHECK(judged.rows().size() > 5);
  }
}

TEST_CASE("lemma 1: the coins of the listing are consistent, a biased reservoir is not") {
  const Case c;
  CHECK(c.slots(coins(c, right, false)).none_violated());
  const auto uniform = [](double, double, Index n) { return 1 / static_cast<double>(n + 1); };
  CHECK(c.slots(coins(c, uniform, false)).verdict("law of the slots") == Verdict::violated);
  const auto late = [](double weight, double mu, Index) { return 1.3 * weight / mu; };
  CHECK(c.slots(coins(c, late, false)).verdict("law of the slots") == Verdict::violated);
  const auto stale = [](double weight, double mu, Index) { return weight / std::max(weight, mu - weight); };
  CHECK(c.slots(coins(c, stale, false)).verdict("law of the slots") == Verdict::violated);
}

TEST_CASE("lemma 1: slots that share coins are not independent") {
  const Case c;
  CHECK(c.slots(coins(c, right, true)).verdict("slots are independent") == Verdict::violated);
}

TEST_CASE("lemma 1: slots that reuse their draws are violations, although the law holds at each time") {
  const Case c;
  const auto reuse = [&](bool redraw) -> SlotHistory {
    return [&c, redraw](std::uint32_t seed, std::span<const Index> times) {
      std::mt19937_64 engine(seed + 1);
      std::uniform_real_distribution<> uniform;
      double early = 0;
      for (Index i = 0; i < times[0]; ++i) early += c.values.norms2[static_cast<std::size_t>(i)];
      Histories history(2);
      for (int slot = 0; slot < 8; ++slot) {
        const double u = uniform(engine);
        history[0].push_back(quantile_token(c, u, 0, times[0]));
        // Redrawn from all tokens, or kept by a fair coin and else replaced by the draw that chose the first token.
        const bool kept = uniform(engine) < early / c.values.mu;
        history[1].push_back(redraw ? quantile_token(c, uniform(engine), 0, times[1])
                             : kept ? history[0].back()
                                    : quantile_token(c, u, times[0], times[1]));
      }
      return history;
    };
  };
  for (const bool redraw : {false, true}) {
    const Judged judged = c.slots(reuse(redraw));
    CHECK(holds(judged.verdict("law of the slots")));
    CHECK(judged.verdict("later draws") == Verdict::violated);
  }
}

TEST_CASE("lemma 1: mu without the newest token and wrong weights are violations") {
  const Case c;
  const std::vector<Index> tokens = {240};
  std::vector<SubgenSketch> sketches = {c.runner.kept(0)};
  const auto run = [&](CheckContext& context) { check_mu(context, c.values, tokens, sketches); };
  CHECK(holds(c.judged(run).verdict("mu")));
  for (double& weight : sketches[0].num) weight *= 1 - c.values.norms2.back() / c.values.mu;
  CHECK(c.judged(run).verdict("mu") == Verdict::violated);

  CHECK(holds(c.entry_counts([](SubgenSketch&) {}).verdict("law of the entries")));
  const auto off = [](SubgenSketch& sketch) {
    for (double& weight : sketch.num) weight *= 1.01;
  };
  CHECK(c.entry_counts(off).verdict("law of the entries") == Verdict::violated);
}

TEST_CASE("lemma 2: deterministic faults") {
  const Case c;
  REQUIRE(c.setup.clusters() > 2);
  REQUIRE(c.clusters(c.setup).none_violated());
  SUBCASE("n_i/t with another n_i") {
    SubgenSketch sketch = c.runner.kept(0);
    for (double& weight : sketch.den) weight *= 1.001;
    const Judged judged = c.judged([&](CheckContext& context) { check_clusters(context, c.setup, sketch); });
    CHECK(judged.verdict("(2)") == Verdict::violated);
    CHECK(holds(judged.verdict("(3)")));
  }
  SUBCASE("a representative outside its cluster") {
    SubgenSetup faulty = c.setup;
    std::swap(faulty.partition.representatives[0], faulty.partition.representatives[1]);
    CHECK(c.clusters(faulty).verdict("partition and (1)") == Verdict::violated);
  }
  SUBCASE("keys farther than delta, or representatives nearer") {
    SubgenSetup faulty = c.setup;
    faulty.partition.radius *= 0.9f;
    CHECK(c.clusters(faulty).verdict("(3)") == Verdict::violated);
    faulty.partition.radius = c.setup.partition.radius * 1.5f;
    CHECK(c.clusters(faulty).verdict("(4)") == Verdict::violated);
  }
  SUBCASE("a key that joined another cluster") {
    SubgenSetup faulty = c.setup;
    for (Index i = 100; i < 240; ++i) {
      auto& label = faulty.partition.labels[static_cast<std::size_t>(i)];
      label = (label + 1) % static_cast<std::int32_t>(c.setup.clusters());
    }
    CHECK(c.clusters(faulty).verdict("nearest representative") == Verdict::violated);
  }
}

TEST_CASE("lemma 2 (5): biased and dependent samples") {
  const Case c;
  std::vector<std::vector<TokenId>> members(c.setup.sizes.size());
  for (Index i = 0; i < 240; ++i)
    members[static_cast<std::size_t>(c.setup.partition.labels[static_cast<std::size_t>(i)])].push_back(
        static_cast<TokenId>(i));
  const auto sampler = [&](double bias, bool copies) -> Sketcher {
    return [&members, bias, copies](std::uint32_t seed) {
      std::mt19937_64 engine(seed + 1);
      std::uniform_real_distribution<> uniform;
      SubgenSketch sketch;
      for (const auto& cluster : members) {
        const auto n = static_cast<double>(cluster.size());
        const auto draw = [&] { return cluster[static_cast<std::size_t>(n * std::pow(uniform(engine), bias))]; };
        const TokenId first = draw();
        for (int j = 0; j < 6; ++j) {
          sketch.ids.push_back(copies || j == 0 ? first : draw());
          sketch.den.push_back(n / 6);
        }
      }
      sketch.num.assign(sketch.ids.size(), 0);
      return sketch;
    };
  };
  CHECK(c.samples(sampler(1, false)).none_violated());
  CHECK(c.samples(sampler(1.3, false)).verdict("(5) samples are uniform") == Verdict::violated);
  CHECK(c.samples(sampler(1, true)).verdict("(5) samples are independent") == Verdict::violated);
}
