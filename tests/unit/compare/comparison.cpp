// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/catalogue.hpp>
#include <kvbench/compare/comparison.hpp>

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <support/growth.hpp>
#include <support/messages.hpp>
#include <unit/compare/made.hpp>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

const Metric rel_err = Metric::rel_err;

std::vector<Comparison> compared(std::vector<const QueryResults*> files, const char* a, const char* b,
                                 Metric of = rel_err, Span span = Span::layer) {
  ComparisonRequest request{.files = std::move(files), .metric = info_of(of), .span = span};
  if (a) request.a = parse_configuration(a, "--a");
  if (b) request.b = parse_configuration(b, "--b");
  return compare::compare(request);
}

}  // namespace

TEST_CASE("a constant difference, by hand") {
  const Made made = std::move(Made("m").with("x", constant(1)).with("y", constant(3)));
  const auto rows = compared({&made}, "x", "y");
  REQUIRE(rows.size() == 1);
  const Comparison& r = rows[0];
  CHECK(r.layer == 4);
  CHECK(!r.query_head);
  CHECK(r.test.mean_a == 1);
  CHECK(r.test.mean_b == 3);
  CHECK(r.test.difference == -2);
  CHECK(r.test.interval.lo == -2);
  CHECK(r.test.interval.hi == -2);
  CHECK(r.pairs == 2 * 128);
  CHECK(r.test.blocks == 8);
  CHECK(r.test.p_value == 2.0 / 256);
  CHECK(r.p_adjusted == 2.0 / 256);
  CHECK(r.outcome == Outcome::a_better);
  CHECK(r.seeds == 0);
  CHECK(compared({&made}, "y", "x")[0].outcome == Outcome::b_better);
  CHECK(compared({&made}, "x", "y", Metric::recall)[0].outcome == Outcome::b_better);
  CHECK(compared({&made}, "x", "y", Metric::rel_err, Span::head).size() == 2);
  CHECK(compared({&made}, "x", "y", Metric::rel_err, Span::all)[0].prompt == "all");
}

TEST_CASE("directions of metrics") {
  CHECK(info_of(Metric::rel_err).better == Better::smaller);
  CHECK(info_of(Metric::dir_err).better == Better::smaller);
  CHECK(info_of(Metric::log_z_err).better == Better::nearer_to_zero);
  CHECK(info_of(Metric::recall).better == Better::larger);
  CHECK(info_of(Metric::mass_recall).better == Better::larger);
  CHECK(info_of(Metric::cache_hit_r4).better == Better::larger);
  // ln(Z'/Z) of -3 is worse than 1.
  const Made made = std::move(Made("m").with("x", constant(-3)).with("y", constant(1)));
  CHECK(compared({&made}, "x", "y", Metric::log_z_err)[0].outcome == Outcome::b_better);
}

TEST_CASE("values that do not apply are left out and counted") {
  const Made made = std::move(Made("m")
                                  .with("x", [](std::size_t q, auto) { return q < 16 ? none : 1.0f; })
                                  .with("y", constant(3))
                                  .with("z", constant(none)));
  const Comparison r = compared({&made}, "x", "y")[0];
  CHECK(r.pairs == 2 * 112);
  CHECK(r.left_out == 2 * 16);
  CHECK(r.test.blocks == 7);
  CHECK(r.test.mean_b == 3);
  const Comparison nothing = compared({&made}, "x", "z")[0];
  CHECK(nothing.outcome == Outcome::skipped);
  CHECK(contains(nothing.reason, "no query of both"));
  CHECK(std::isnan(nothing.p_adjusted));
}

TEST_CASE("rows that are not ok give a skipped comparison with the reason") {
  const Made made = std::move(Made("m").with("x", constant(1)).failing("y", Status::infeasible));
  const Comparison r = compared({&made}, "x", "y")[0];
  CHECK(r.outcome == Outcome::skipped);
  CHECK(r.reason == "y infeasible: it cannot");
}

TEST_CASE("comparisons with few blocks or a single seed state their limits") {
  const Made few = std::move(Made("m", 50).with("x", constant(1)).with("y", constant(3)));  // 4 blocks: 2 / 2^4
  const Comparison r = compared({&few}, "x", "y")[0];
  CHECK(r.outcome == Outcome::untested);
  CHECK(r.tested_over.empty());
  CHECK(r.test.p_least == 0.125);
  CHECK(contains(r.reason, "no p-value below 0.12 is possible"));
  const Made one = std::move(Made("m").with("x", constant(1), {7}).with("y", constant(3)));
  const Comparison single = compared({&one}, "x", "y")[0];
  CHECK(single.outcome == Outcome::untested);
  CHECK(contains(single.reason, "--seeds"));
  CHECK(std::isnan(single.p_adjusted));
}

TEST_CASE("over several layers of a model, layers are the units: by hand") {
  // Ratios y / x of 2, 4, 8 and 16 on four of eight layers, the same in every block of queries. log2: mean 2.5,
  // variance of the mean 5/12; t_3 is 3.1824.
  std::vector<Made> layers;
  for (const std::int64_t layer : {0, 2, 4, 6}) {
    const auto ratio = static_cast<float>(2 * std::exp2(layer / 2));
    layers.push_back(
        std::move(Made("m", 128, layer).with("x", constant(1)).with("y", constant(ratio), {7}).of_layers(8)));
  }
  const std::vector<const QueryResults*> files = {&layers[0], &layers[1], &layers[2], &layers[3]};
  const Comparison r = compared(files, "x", "y", rel_err, Span::all)[0];
  CHECK(r.over_places == Approx(std::exp2(-2.5)));
  CHECK(r.over_places_interval.lo == Approx(std::exp2(-2.5 - 3.182446 * std::sqrt(5. / 12))));
  CHECK(r.tested_over == "4 of 8 layers");
  CHECK(r.p_value < 0.05);  // t = 3.87, with one seed: its draws are independent from layer to layer
  CHECK(r.p_adjusted == r.p_value);
  CHECK(r.outcome == Outcome::a_better);
  CHECK(r.test.mean_b == 7.5);
  CHECK(r.effect().first == r.over_places);
  // The ratio is that of the geometric means, not of 1 and 7.5.
  CHECK(r.has_geometric_means());
  CHECK(r.means().first == Approx(1));
  CHECK(r.means().second == Approx(std::exp2(2.5)));
  CHECK(r.units == 4);
  CHECK(!r.some_layers_alone);
  const Comparison one = compared({&layers[1]}, "x", "y", rel_err, Span::all)[0];
  CHECK(one.some_layers_alone);
  CHECK_FALSE(one.has_geometric_means());  // over blocks of queries
  CHECK(one.means() == std::pair(one.test.mean_a, one.test.mean_b));
  CHECK(contains(one.reason, "holds for the replayed layers alone"));
  // On one layer, blocks of queries are the units, of which one seed has no variance.
  CHECK(compared(files, "x", "y")[1].outcome == Outcome::untested);
}

TEST_CASE("a group is tested over the same, and intervals have the level of its adjustment") {
  std::vector<Made> layers;
  for (const std::int64_t layer : {0, 2, 4, 6}) {
    const auto ratio = static_cast<float>(2 * std::exp2(layer / 2));
    layers.push_back(std::move(Made("m", 128, layer)
                                   .with("x", constant(1))
                                   .with("y", constant(ratio))
                                   .with("near", constant(layer == 0 ? 2 : 1))
                                   .with("exact on one", constant(layer == 0 ? 0 : 9))
                                   .of_layers(8)));
  }
  const std::vector<const QueryResults*> files = {&layers[0], &layers[1], &layers[2], &layers[3]};
  const auto rows = compared(files, "x", nullptr, rel_err, Span::all);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].family == 2);
  CHECK(rows[0].p_adjusted == Approx(2 * rows[0].p_value));  // 0.0610, of two: not significant
  CHECK(rows[0].over_places_interval.lo == Approx(std::exp2(-2.5 - 4.176535 * std::sqrt(5. / 12))));
  CHECK(rows[0].outcome == Outcome::tied);
  CHECK(rows[2].outcome == Outcome::untested);
  CHECK(rows[2].tested_over.empty());
  CHECK(std::isnan(rows[2].p_adjusted));
  CHECK(contains(rows[2].reason, "a mean of 0 on a layer, where there is no ratio"));
  const Comparison alone = compared(files, "x", "exact on one", rel_err, Span::all)[0];
  CHECK(alone.tested_over == "8 blocks of queries");
  CHECK(alone.some_layers_alone);
  // Without a and b the best is that of the geometric mean, as the ratios are.
  CHECK(compared(files, nullptr, nullptr, rel_err, Span::all)[0].b == "x");
}

TEST_CASE("comparisons with too few blocks for Holm state it") {
  Made made("m");  // 8 blocks: 2 / 2^8 for each of 7, and Holm starts with 7
  for (int i = 0; i < 8; ++i) made.with(fmt::format("m{}", i), constant(static_cast<float>(i)));
  for (const Comparison& r : compared({&made}, "m0", nullptr)) {
    CHECK(r.p_adjusted == Approx(7 * 2.0 / 256));
    CHECK(r.outcome == Outcome::tied);
    CHECK(contains(r.reason, "8 blocks give no smaller p-value, and Holm over 7 hypotheses"));
  }
}

TEST_CASE("seeds pair with equal seeds, in order, or with a single value") {
  const Value by_seed = [](auto, std::uint32_t seed) { return static_cast<float>(seed); };
  const Made one =
      std::move(Made("1").with("x", by_seed, {1, 2, 3}).with("y", by_seed, {2, 3, 4}).with("z", constant(5)));
  const Comparison common = compared({&one}, "x", "y")[0];
  CHECK(common.seeds == 2);
  CHECK(common.test.difference == 0);
  CHECK(common.outcome == Outcome::tied);
  const Comparison fixed = compared({&one}, "x", "z")[0];
  CHECK(fixed.seeds == 3);
  CHECK(fixed.test.difference == Approx(-3));  // 2 - 5
  const Made other = std::move(Made("2").with("x", by_seed, {11, 12}));
  const Comparison in_order = compared({&one, &other}, "1:x", "2:x")[0];
  CHECK(in_order.a == "1:x");
  CHECK(in_order.seeds == 2);
  CHECK(in_order.test.difference == Approx(-10));
}

TEST_CASE("without b a is compared with all others, without both all with the best, without references") {
  const Made made = std::move(Made("m")
                                  .with("exact", constant(0))
                                  .with("oracle-topk", constant(0.1f))
                                  .with("good", constant(1))
                                  .with("same", constant(1))
                                  .with("bad", constant(2)));
  CHECK(compared({&made}, "good", nullptr).size() == 4);
  const auto to_b = compared({&made}, nullptr, "good");
  REQUIRE(to_b.size() == 4);
  CHECK(to_b[0].a == "exact");
  CHECK(to_b[0].b == "good");
  const auto best = compared({&made}, nullptr, nullptr);
  REQUIRE(best.size() == 2);
  CHECK(best[0].a == "same");
  CHECK(best[0].b == "good");
  CHECK(best[0].outcome == Outcome::tied);
  CHECK(best[1].a == "bad");
  CHECK(best[1].family == 3);  // pairs of three candidates
  CHECK(best[1].p_adjusted == Approx(3 * 2.0 / 256));
  CHECK(best[1].outcome == Outcome::b_better);
}

TEST_CASE("names of configurations") {
  const Made made = std::move(Made("m")
                                  .with("subgen", constant(1))
                                  .with("subgen", constant(2), {}, "delta=2;t=4")
                                  .with("subgen", constant(2), {}, "", "50%")
                                  .with("h2o", constant(3)));
  CHECK(compared({&made}, "subgen[]", "h2o").size() == 1);
  CHECK(compared({&made}, "SubGen", "H2O")[0].a == "subgen");  // the defaults, and without case
  CHECK(compared({&made}, "subgen[t=4,delta=2]", "h2o")[0].a == "subgen[delta=2;t=4]");
  const auto budgets = compared({&made}, "subgen[]@50%", "subgen[]@25%");
  REQUIRE(budgets.size() == 1);
  CHECK(budgets[0].budget_a.text() == "50%");
  CHECK(budgets[0].budget_b.text() == "25%");
  CHECK(compared({&made}, "subgen@0.5", "subgen@25%")[0].budget_a.text() == "50%");
  const auto complaint = [&](const char* a, const char* b) {
    return message_of<Error>([&] { compared({&made}, a, b); });
  };
  CHECK(contains(complaint("subgn", nullptr), "Did you mean 'subgen'?"));
  const Made several =
      std::move(Made("m").with("x", constant(1), {}, "t=1").with("x", constant(2), {}, "t=2").with("y", constant(3)));
  CHECK(contains(message_of<Error>([&] { compared({&several}, "x", "y"); }), "give one of x[t=1], x[t=2]"));
  CHECK(contains(complaint("subgen[t=5]", nullptr), "no configuration 'subgen[t=5]'"));
  CHECK(contains(complaint("h2o@50%", nullptr), "no budget '50%'"));
  CHECK(contains(complaint("2:h2o", nullptr), "no file 2"));
  CHECK(contains(complaint("h2o", "h2o"), "are the same"));
  CHECK(contains(complaint("h2o[", nullptr), "bracket"));
  CHECK(contains(complaint("@25%", nullptr), "method is missing"));
  const Made files = std::move(Made("m")
                                   .with("./mine.py:far", constant(1))
                                   .with("./mine.py:near", constant(2))
                                   .with("../other/mine.py:near", constant(2))
                                   .with("near", constant(3)));
  const auto meant = [&](const char* a) { return compared({&files}, a, "./mine.py:near")[0].a; };
  for (const char* written : {"far", "FAR", "mine.py:far", "./mine.py:far"}) CHECK(meant(written) == "./mine.py:far");
  CHECK(meant("near") == "near");  // the whole name, before those that end with it
  CHECK(meant("other/mine.py:near") == "../other/mine.py:near");
  const auto unclear = [&](const char* a) { return message_of<Error>([&] { meant(a); }); };
  CHECK(contains(unclear("mine.py:near"), "2 methods; give one of ./mine.py:near, ../other/mine.py:near."));
  CHECK(contains(unclear("ar"), "there is no method 'ar'"));  // no part of a name
  CHECK(contains(message_of<Error>([&] { compared({&made, &made}, "h2o", "subgen[]"); }), "2:h2o"));
}

TEST_CASE("budgets of equal tokens are one budget, also within a file") {
  const Made one = std::move(Made("1").with("x", constant(1), {}, "", "512").with("x", constant(1), {}, "", "12.5%"));
  const Made two = std::move(Made("2").with("y", constant(3), {}, "", "12.5%").with("x", constant(2), {}, "", "12.5%"));
  const auto pairs = compared({&one, &two}, "1:x", "y");
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].outcome == Outcome::a_better);
  CHECK(pairs[0].budget_b.text() == "512");
  CHECK(compared({&one, &two}, "1:x", "2:x")[0].test.difference == -1);
  // Bytes, a limit of a cost and another number of tokens are other budgets.
  for (const char* text : {"128KiB", "12.5%mem", "13%"}) {
    const Made other = std::move(Made("3").with("z", constant(3), {}, "", text));
    CHECK(contains(message_of<Error>([&] { compared({&one, &other}, "x", "z"); }), "no budget in common"));
  }
}

TEST_CASE("a comparison at unequal cost says so") {
  for (const char* budget : {"25%", "25%mem", "25%read"}) {
    const auto seeds = {0u, 1u};
    const Made made = std::move(Made("m")
                                    .with("x", constant(1), seeds, "", budget)
                                    .holding(1000)
                                    .with("near", constant(1), {}, "", budget)
                                    .holding(1050)
                                    .with("far", constant(2), {}, "", budget)
                                    .holding(1051)
                                    .with("exact", constant(0), {}, "", budget)
                                    .holding(4000));
    CHECK(compared({&made}, "x", "near")[0].reason.empty());
    const bool reads = std::string(budget) == "25%read";  // all read 100 bytes
    CHECK(compared({&made}, "x", "far")[0].reason ==
          (reads ? "" : "not at equal cost: x holds 1000 bytes per kv head, far 1051"));
    CHECK(compared({&made}, "x", "exact")[0].reason.empty());
  }
}

TEST_CASE("where nothing can be compared the error says why") {
  const auto complaint = [](const Made& made, const char* a) {
    return message_of<Error>([&] { compared({&made}, a, nullptr); });
  };
  const Made single = std::move(Made("m").with("x", constant(1)).with("exact", constant(0)));
  CHECK(contains(complaint(single, nullptr), "two methods other than the references"));
  const Made apart = std::move(Made("m").with("x", constant(1)).with("y", constant(1), {}, "", "50%"));
  CHECK(contains(complaint(apart, "y"), "y is the only configuration at its budget, 50%"));
}

TEST_CASE("files must have the same queries") {
  const Made one("one.h5"), two("two.h5", 100);
  CHECK(contains(message_of<Error>([&] { compared({&one, &two}, nullptr, nullptr); }), "different queries"));
}

TEST_CASE("the time to read all configurations is linear in their number") {
  CHECK(grows_linearly(
      [](int count) {
        Made made("m", 1);
        for (int i = 0; i < count; ++i) made.with("x", constant(1), {}, std::to_string(i));
        const Catalogue catalogue({&made});
        REQUIRE(std::ssize(catalogue.sides()) == count);
        for (const Side& side : catalogue.sides()) CHECK(catalogue.read(side, 1).seeds.size() == 1);
      },
      500));
}
