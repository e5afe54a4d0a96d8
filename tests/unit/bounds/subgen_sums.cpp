// SPDX-License-Identifier: Apache-2.0
// SubGen's tau, z and z/tau: laws by hand; the method is consistent with the bounds, planted faults are violations.
#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

#include <cmath>

#include <kvbench/bounds/subgen/checks.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

struct Case {
  Subject subject = subgen_subject();
  SubgenValues values = subgen_values(subject);
  std::vector<SubgenQuery> queries = subgen_queries(subject);
  SubgenSetup setup = radius_setup(subject, 0.8, 6, cpu());
  SubgenRunner runner{subject, setup, cpu()};

  Sketcher faulty(const std::function<void(SubgenSketch&)>& fault) const {
    return [this, fault](std::uint32_t seed) {
      SubgenSketch sketch = runner.answered(seed);
      fault(sketch);
      return sketch;
    };
  }
  Sketcher right() const {
    return faulty([](SubgenSketch&) {});
  }
  Judged partition(const Sketcher& sketcher) const {
    return {subject, [&](CheckContext& context) { check_partition(context, setup, queries, sketcher); }};
  }
  Judged product(const Sketcher& sketcher) const {
    return {subject, [&](CheckContext& context) { check_product(context, values, queries, setup.slots, sketcher); }};
  }
  Judged attention(const Sketcher& sketcher, double eps) const {
    return {subject, [&](CheckContext& context) {
              check_attention(context, "Eq. 3", {setup, values, queries}, eps, 400, sketcher);
            }};
  }
};

/// All logits without the factor 1/sqrt(d) of the subject, computed by the kernel.
struct Misscaled {
  explicit Misscaled(const Case& c) : subject(c.subject) { subject.head.scale = 1; }
  Subject subject;
};

}  // namespace

TEST_CASE("the law of tau by hand") {
  // Clusters {1, 3} and {5}, t = 2: E tau = 9. The first: n = 2, mean 2, var 1, so Var tau = 4 * 1 / 2 = 2; a term is
  // 2/2 * 1. Fourth cumulant: 16 (1 - 3) / 8 = -4.
  SubgenSetup setup{.params = {.t = 2}, .partition = {.radius = 1, .labels = {0, 0, 1}, .representatives = {0, 2}}};
  setup.sizes = {2, 1};
  const TauLaw law = tau_law(std::array{1.0, 3.0, 5.0}, setup);
  CHECK(law.total == 9);
  CHECK(law.variance == doctest::Approx(2));
  CHECK(law.cumulant4 == doctest::Approx(-4));
  CHECK(law.largest == doctest::Approx(1));
  CHECK(law.ratio == doctest::Approx(3));
  CHECK(law.shared == 1);
  CHECK(law.largest_share == doctest::Approx(4.0 / 9));
  // (ii) at r = 0 is exact, and (i) needs t = 3 rho ln(2/p) / eta^2 samples for the one cluster that is not exact.
  const PartitionBounds still = partition_bounds(law, setup, 0, 0, 3, 0.1);
  CHECK(still.variance_tight == doctest::Approx(0));
  CHECK(still.union_tight == doctest::Approx(std::sqrt(3 * std::log(20.0) / 2)));
}

TEST_CASE("the law of z by hand") {
  // Values 1 and -2 in one dimension: mu = 5. Numbers 1 and 1, s = 2. X = 5 with probability 1/5 and -5/2 with 4/5:
  // mean -1, E X^2 = 5 + 5 = mu |a|^2 = 10, so E |z + 1|^2 = 9/2. Y = 6 and -3/2: fourth moment 1296/5 + 4/5 * 81/16 =
  // 263.25.
  const Subject subject = make_subject({.name = "two", .keys = {0, 0}, .values = {1, -2}, .queries = {1}}, ref());
  const ProductLaw law = product_law(subject, subgen_values(subject), std::array{1.0, 1.0}, 2);
  CHECK(law.mean[0] == doctest::Approx(-1));
  CHECK(law.variance == doctest::Approx(4.5));
  CHECK(law.along == doctest::Approx(4.5));
  CHECK(law.largest == doctest::Approx(3));
  CHECK(law.kurtosis == doctest::Approx(263.25 / 81));
}

TEST_CASE("the method is consistent with the claims, which are not vacuous") {
  const Case c;
  for (const Check& claim :
       {subgen_partition(), subgen_amm(), subgen_theorem1(), subgen_size(), subgen_corollary1(), subgen_quantities()}) {
    const Judged judged{c.subject, claim.run};
    CHECK(judged.none_violated());
    CHECK_FALSE(judged.rows().empty());
  }
  CHECK(holds(c.partition(c.right()).verdict("(iii)")));
  CHECK(holds(c.product(c.right()).verdict("Markov")));
  CHECK(holds(c.attention(c.right(), 0.5).verdict("Eq. 3")));
}

TEST_CASE("tau: wrong weights, dependent samples and logits of another scale are violations") {
  const Case c;
  const auto heavy = c.faulty([](SubgenSketch& sketch) {
    for (double& weight : sketch.den) weight *= 1.03;
  });
  CHECK(c.partition(heavy).verdict("E tau") == Verdict::violated);
  // Half of the samples, each counted twice: unbiased, with twice the variance.
  SubgenSetup fewer = c.setup;
  fewer.params.t = 3;
  const SubgenRunner halved(c.subject, fewer, cpu());
  const Judged twice = c.partition([&](std::uint32_t seed) { return halved.answered(seed); });
  CHECK(holds(twice.verdict("E tau = Z")));
  CHECK(twice.verdict("E (tau - Z)^2") == Verdict::violated);
  const Misscaled other(c);
  const SubgenRunner wrong(other.subject, c.setup, cpu());
  const Judged judged = c.partition([&](std::uint32_t seed) { return wrong.answered(seed); });
  CHECK(judged.verdict("E tau = Z") == Verdict::violated);
  CHECK(judged.verdict("(iii)") == Verdict::violated);
}

TEST_CASE("z: wrong weights, a biased reservoir, too few slots and logits of another scale are violations") {
  const Case c;
  const auto heavy = c.faulty([](SubgenSketch& sketch) {
    for (double& weight : sketch.num) weight *= 1.1;
  });
  CHECK(c.product(heavy).verdict("E z") == Verdict::violated);
  const auto uniform = [&](std::uint32_t seed) {
    std::mt19937_64 engine(seed + 1);
    SubgenSketch sketch;
    for (Index j = 0; j < c.setup.slots; ++j) {
      const auto token = static_cast<TokenId>(engine() % 240);
      sketch.ids.push_back(token);
      sketch.num.push_back(c.values.mu / static_cast<double>(c.setup.slots) /
                           c.values.norms2[static_cast<std::size_t>(token)]);
    }
    sketch.den.assign(sketch.ids.size(), 0);
    for (const SubgenQuery& query : c.queries) {
      for (const TokenId token : sketch.ids)
        sketch.logits.push_back(std::log(query.a[static_cast<std::size_t>(token)]) + query.shift);
    }
    return sketch;
  };
  CHECK(c.product(uniform).verdict("E z") == Verdict::violated);
  SubgenSetup fewer = c.setup;
  fewer.params.s = c.setup.slots / 2;
  const SubgenRunner halved(c.subject, fewer, cpu());
  CHECK(c.product([&](std::uint32_t seed) { return halved.answered(seed); }).verdict("E |z") == Verdict::violated);
  const Misscaled other(c);
  const SubgenRunner wrong(other.subject, c.setup, cpu());
  CHECK(c.product([&](std::uint32_t seed) { return wrong.answered(seed); }).verdict("E z") == Verdict::violated);
}

TEST_CASE("Eq. 3: logits of another scale and a shrunken tau are violations") {
  const Case c;
  const Misscaled other(c);
  const SubgenRunner wrong(other.subject, c.setup, cpu());
  const Judged judged = c.attention([&](std::uint32_t seed) { return wrong.answered(seed); }, 0.3);
  CHECK(judged.verdict("Eq. 3") == Verdict::violated);
  const auto shrunken = c.faulty([](SubgenSketch& sketch) {
    for (double& x : sketch.answers) x *= 2;
  });
  CHECK(c.attention(shrunken, 0.5).verdict("Eq. 3") == Verdict::violated);
}

TEST_CASE("m' of nested radii brackets the least partition of a small set") {
  // 0, 1, 2, 3 on a line, delta = 1: the leaders 0 and 2 begin two clusters; pairs {0,1}, {2,3} are a partition of
  // diameter 1. At delta/2 each key begins a cluster.
  const Subject subject =
      make_subject({.name = "line", .keys = {0, 1, 2, 3}, .values = {1, 1, 1, 1}, .queries = {1}}, ref());
  const auto at = [&](float delta) { return leader_partition(ref(), subject.head.keys, delta, 4)->clusters(); };
  CHECK(at(1) == 2);
  CHECK(at(0.5f) == 4);
  const Judged nested(subject, [&](CheckContext& context) { check_sizes_nest(context, 1, at(1), at(0.5f)); });
  CHECK(nested.none_violated());
  const Judged reversed(subject, [&](CheckContext& context) { check_sizes_nest(context, 1, at(0.5f), at(1)); });
  CHECK_FALSE(reversed.none_violated());
}

TEST_CASE("growth exponents of streams with known growth") {
  std::vector<double> all, roots;
  for (int n = 1; n <= 4096; ++n) {
    all.push_back(n);
    roots.push_back(std::floor(std::sqrt(n)));
  }
  CHECK(growth_exponent(all) == doctest::Approx(1));
  CHECK(growth_exponent(roots) == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("Corollary 1: memory that grows with the stream although the clusters do not is a violation") {
  const Case c;
  const Growth growth = cluster_growth(c.subject, c.setup.partition.radius, cpu());
  const auto judged = [&](const std::function<Footprint(const SubgenSetup&, Index)>& footprint) {
    return Judged{c.subject, [&](CheckContext& context) { check_memory_growth(context, c.setup, growth, footprint); }};
  };
  CHECK(judged([&](const SubgenSetup& setup, Index tokens) {
          return SubgenRunner(c.subject, setup, cpu()).footprint(tokens);
        }).none_violated());
  CHECK_FALSE(judged([](const SubgenSetup&, Index tokens) {
                return Footprint{{.name = "all", .rows = tokens * tokens, .cols = 8}};
              }).none_violated());
}

TEST_CASE("literal bounds of tau and z are tested at sizes where they are informative") {
  const Case c;
  const Judged tau{c.subject, subgen_partition().run, 20};
  CHECK(holds(tau.verdict("(i) literal")));
  const Judged z{c.subject, subgen_amm().run, 20};
  for (const CheckRow& row : z.rows()) {
    if (row.part == "Markov, literal constants") CHECK(row.bound < row.trivial);
  }
  const auto nothing = [&](const SubgenSetup& setup) -> Sketcher {
    const auto runner = std::make_shared<SubgenRunner>(c.subject, setup, cpu());
    return [runner](std::uint32_t seed) {
      SubgenSketch sketch = runner->answered(seed);
      for (double& weight : sketch.den) weight = 0;
      return sketch;
    };
  };
  const Judged faulty{c.subject, [&](CheckContext& context) { check_partition_literal(context, c.queries, nothing); },
                      20};
  CHECK_FALSE(faulty.none_violated());
}
