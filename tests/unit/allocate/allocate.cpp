// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/allocate/allocate.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <support/messages.hpp>

using namespace kvbench;
using namespace kvbench::allocate;

namespace {

/// Two layers, and documents with one probe of one scored token, so that D = c^2 / 2.
Damages damages_of(const std::vector<std::vector<double>>& documents, std::vector<std::int64_t> costs) {
  Damages out{.model = "m", .model_layers = 2, .places = {{0}, {1}}};
  const methods::MethodInfo& h2o = methods::find_method("h2o");
  for (std::size_t e = 0; e < costs.size(); ++e) out.menu.push_back({{&h2o, h2o.bind({})}, Budget::parse("50%mem")});
  for (int layer = 0; layer < 2; ++layer) out.cost.insert(out.cost.end(), costs.begin(), costs.end());
  for (const std::vector<double>& sums : documents) {
    DocumentDamage& document = out.documents.emplace_back(DocumentDamage{"d", 1, 1, {}});
    for (const double c : sums) document.sums.push_back({c});
  }
  return out;
}

/// Entries that keep 20, 30 and 40 % of a layer. Layer 0 needs its tokens, layer 1 does not.
const std::vector<double> first_layer_matters = {2, 1.5, 0.2, 0.2, 0.15, 0.1};
const std::vector<std::int64_t> costs = {20000, 30000, 40000};

std::vector<double> times(std::vector<double> sums, double factor) {
  for (double& c : sums) c *= factor;
  return sums;
}

}  // namespace

TEST_CASE("documents that agree confirm a plan, whatever their damage") {
  const Damages damages =
      damages_of({first_layer_matters, times(first_layer_matters, 10), times(first_layer_matters, 0.1)}, costs);
  const Allocation found = allocate::allocate(damages, Budget::parse("30%mem"));
  CHECK(found.plan.plan == Plan{2, 0});
  CHECK(found.plan.cost == 60000);
  CHECK(found.equal->plan == Plan{1, 1});
  // (0.2 + 0.2)^2 / 2 = 0.08 against (1.5 + 0.15)^2 / 2 = 1.36125 on each document, times 1, 100 and 0.01
  CHECK(found.plan.fitted == doctest::Approx(0.08 * 101.01 / 3));
  CHECK(found.plan.held_out.mean == doctest::Approx(found.plan.fitted));
  CHECK(found.equal->held_out.mean == doctest::Approx(1.36125 * 101.01 / 3));
  CHECK(found.ratio == doctest::Approx(0.08 / 1.36125));
  CHECK(found.confirmed());
  CHECK(found.plan.without == std::vector<Plan>(3, Plan{2, 0}));
  const methods::PlannedBudget lines = planned(damages, found);
  CHECK(lines.at(0, 0)->budget.text() == "40%mem");
  CHECK(lines.at(1, 0)->budget.text() == "20%mem");
}

// Errors of formats close to 16 bits: 0.08e-8 nats against 1.36125e-8.
TEST_CASE("small damage is compared as large damage is") {
  const std::vector<double> small = times(first_layer_matters, 1e-4);
  const Allocation found =
      allocate::allocate(damages_of({small, times(small, 2), times(small, 0.5)}, costs), Budget::parse("30%mem"));
  CHECK(found.plan.plan == Plan{2, 0});
  CHECK(found.ratio == doctest::Approx(0.08 / 1.36125));
  CHECK(found.confirmed());
}

// 0.29 of 200000 is 57999.99999999999 in double precision.
TEST_CASE("a plan that costs the budget exactly fits it") {
  const Damages damages = damages_of({first_layer_matters, first_layer_matters}, {20000, 29000, 38000});
  const Allocation found = allocate::allocate(damages, Budget::parse("29%mem"));
  CHECK(found.equal->plan == Plan{1, 1});
  CHECK(found.plan.plan == Plan{2, 0});
  CHECK(found.plan.cost == 58000);
}

// A layer that has 20 % does harm in every second document, and 30 % in both do as little as 20 and 40 % at their best:
// (0.25 + 0.15)^2 / 2 against (0.2 + 0.2)^2 / 2 or (2 + 0.1)^2 / 2.
TEST_CASE("documents that contradict each other confirm no plan, and equal budgets are the answer") {
  const std::vector<double> first = {2, 0.25, 0.2, 0.2, 0.15, 0.1}, second = {0.2, 0.15, 0.1, 2, 0.25, 0.2};
  const Damages damages = damages_of({first, second, first, second}, costs);
  const Allocation found = allocate::allocate(damages, Budget::parse("30%mem"));
  CHECK_FALSE(found.confirmed());
  CHECK(found.ratio >= 1);
  CHECK_FALSE(found.needed);
  for (const Accept accept : {Accept::expected, Accept::confirmed}) {
    CHECK(&found.answer(accept) == &*found.equal);
    CHECK(planned(damages, found, accept).at(0, 0)->budget.text() == "30%mem");
  }
}

// The third document needs tokens in layer 0 less than the others do: with layers l and m at 40 and 20 % it has
// (0.2 + 0.2)^2 / 2 or (0.25 + 0.2)^2 / 2, equal budgets (1.5 + 0.15)^2 / 2 or (0.3 + 0.15)^2 / 2.
TEST_CASE("a plan of which less damage is expected is the answer, unless only confirmed ones are") {
  const Damages damages =
      damages_of({first_layer_matters, first_layer_matters, {0.35, 0.3, 0.25, 0.2, 0.15, 0.1}}, costs);
  const Allocation found = allocate::allocate(damages, Budget::parse("30%mem"));
  CHECK(found.plan.without == std::vector<Plan>(3, Plan{2, 0}));
  const double third = std::log(0.45 * 0.45 / (0.45 * 0.45)), others = std::log(0.16 / (1.65 * 1.65));
  const double mean = (third + 2 * others) / 3, spread = std::sqrt(std::pow(others - third, 2) / 3);
  CHECK(found.ratio == doctest::Approx(std::exp(mean)));
  CHECK(found.interval.hi == doctest::Approx(std::exp(mean + 4.302653 * spread / std::sqrt(3))));
  CHECK_FALSE(found.confirmed());
  // mean = -1.889, spread = 1.636: 3.182 * 1.636 / sqrt(4) = 2.60, 2.776 * 1.636 / sqrt(5) = 2.03,
  // 2.571 * 1.636 / sqrt(6) = 1.717
  CHECK(found.needed == 6);
  CHECK(&found.answer() == &found.plan);
  CHECK(planned(damages, found).at(0, 0)->budget.text() == "40%mem");
  CHECK(&found.answer(Accept::confirmed) == &*found.equal);
  CHECK(planned(damages, found, Accept::confirmed).at(0, 0)->budget.text() == "30%mem");
}

// Mean -1, standard deviation sqrt(2): 2.2622 * 1.4142 / sqrt(10) = 1.012, 2.2281 * 1.4142 / sqrt(11) = 0.950.
TEST_CASE("so many documents are needed as would confirm the ratio if it and its spread stayed") {
  CHECK(documents_needed(std::vector<double>{-2, 0}) == 11);
  CHECK(documents_needed(std::vector<double>{-2, -2, -2}) == 2);
  CHECK_FALSE(documents_needed(std::vector<double>{-1, 1}));
  CHECK_FALSE(documents_needed(std::vector<double>{-1, 2}));
  CHECK_FALSE(documents_needed(std::vector<double>{-100, 99}));  // (1.96 * 141 / 0.5)^2 documents
}

TEST_CASE("beside a plan stand those of all documents but one, in which the one has no say") {
  // Without the last document nothing says that layer 1 needs tokens.
  const std::vector<double> other = {0.3, 0.3, 0.3, 2, 1.5, 0.2};
  const Damages damages = damages_of({first_layer_matters, first_layer_matters, other}, costs);
  const Allocation found = allocate::allocate(damages, Budget::parse("30%mem"));
  REQUIRE(found.plan.without.size() == 3);
  CHECK(found.plan.without[2] == Plan{2, 0});
  for (std::size_t d = 0; d < 3; ++d) {
    for (const std::vector<double>& instead : {times(other, 1e3), std::vector<double>{9, 0.1, 9, 0.1, 9, 0.1}}) {
      Damages changed = damages;
      for (std::size_t i = 0; i < instead.size(); ++i) changed.documents[d].sums[i] = {instead[i]};
      CHECK(allocate::allocate(changed, Budget::parse("30%mem")).plan.without[d] == found.plan.without[d]);
    }
  }
}

// Of two entries of one cost the second is the best of the third document, and so of all and of each pair with it; the
// first one is that of the other two. (1.1 + 1.1)^2 / 2 = 2.42 twice, (10 + 10)^2 / 2 = 200.
TEST_CASE("a held-out document has no say in the plan that is tested on it") {
  const std::vector<double> first = {1, 1.1, 1, 1.1};
  const Damages damages = damages_of({first, first, {10, 1, 10, 1}}, {30000, 30000});
  const Allocation found = allocate::allocate(damages, Budget::parse("30%mem"));
  CHECK(found.equal->plan == Plan{1, 1});
  CHECK(found.equal->held_out.mean == doctest::Approx((2 * 2.42 + 200) / 3));
}

TEST_CASE("one document confirms nothing") {
  const Allocation found = allocate::allocate(damages_of({first_layer_matters}, costs), Budget::parse("30%mem"));
  CHECK(found.plan.plan == Plan{2, 0});
  CHECK(std::isnan(found.ratio));
  CHECK(std::isnan(found.plan.held_out.mean));
  CHECK(found.plan.without.empty());
  CHECK_FALSE(found.confirmed());
  CHECK_FALSE(found.needed);
  CHECK(&found.answer() == &*found.equal);
}

TEST_CASE("a menu of one entry has no plan to confirm") {
  const Allocation found = allocate::allocate(damages_of({{1, 2}, {2, 1}, {1, 1}}, {25000}), Budget::parse("25%mem"));
  CHECK(found.plan.plan == found.equal->plan);
  CHECK(found.ratio == doctest::Approx(1));
  CHECK_FALSE(found.confirmed());
}

// 19.999 % of two layers are 39998 of the 40000 that the cheapest plan costs, 20 % of each.
TEST_CASE("a budget below the cheapest plan is refused") {
  const Damages damages = damages_of({first_layer_matters}, costs);
  CHECK(testing::message_of<NothingFits>([&] { allocate::allocate(damages, Budget::parse("19.999%mem")); }) ==
        "`menu`: no plan of its configurations fits in 19.999%mem; the smallest holds 20 %; choose a larger budget, or "
        "add a method that keeps fewer tokens or bits");
  Damages larger = damages;
  ++larger.cost[0];  // 20.0005 %
  CHECK(
      testing::contains(testing::message_of<NothingFits>([&] { allocate::allocate(larger, Budget::parse("20%mem")); }),
                        "holds 20.001 %;"));
}

// Layer 0 cannot have the first entry and layer 1 not the others, as if their damage there could not be predicted.
TEST_CASE("where all layers can have no entry there is a plan and no equal budget") {
  Damages damages = damages_of({first_layer_matters, times(first_layer_matters, 10)}, costs);
  damages.cost = {-1, 30000, 40000, 20000, -1, -1};
  for (const std::size_t empty : {0U, 4U, 5U}) damages.documents[0].sums[empty] = damages.documents[1].sums[empty] = {};
  const Allocation found = allocate::allocate(damages, Budget::parse("30%mem"));
  CHECK_FALSE(found.equal);
  CHECK(found.plan.plan == Plan{2, 0});
  CHECK(found.plan.held_out.mean == doctest::Approx((0.08 + 8) / 2));
  for (const Accept accept : {Accept::expected, Accept::confirmed}) CHECK(&found.answer(accept) == &found.plan);
  CHECK(std::isnan(found.ratio));
  CHECK_FALSE(found.confirmed());
  CHECK(testing::contains(
      testing::message_of<NothingFits>([&] { allocate::allocate(damages, Budget::parse("24.999%mem")); }),
      "fits in 24.999%mem; the smallest holds 25 %;"));
}

// Ratios of 1 and 4: their geometric mean is 2, the standard deviation of their logarithms .980.
TEST_CASE("damages are multiplied by the ratio that anchors of their kind have, and plans widened") {
  const Budget budget = Budget::parse("30%mem");
  Damages damages = damages_of({first_layer_matters, first_layer_matters}, costs);
  const Allocation plain = allocate::allocate(damages, budget);
  correct(damages, std::vector<replay::ReplayFrame::Prompt>{{.id = "0",
                                                             .anchors = {{"tova", "25%mem", {}, 0.01, 0.01},
                                                                         {"snapkv", "25%mem", {}, 0.04, 0.01},
                                                                         {"q4_0", "", {}, 9, 0.01},
                                                                         {"q8_0", "", {}, 9, 0.01}}}});
  const Allocation found = allocate::allocate(damages, budget);
  CHECK(found.plan.plan == plain.plan.plan);
  CHECK(found.plan.fitted == doctest::Approx(2 * plain.plan.fitted));
  CHECK(found.equal->held_out.mean == doctest::Approx(2 * plain.equal->held_out.mean));
  CHECK(found.ratio == doctest::Approx(plain.ratio));
  // exp(1.96 * .980 * sqrt(1 + 1/2)) = 10.5 each way
  CHECK(found.plan.held_out.interval.hi > 10 * found.plan.held_out.mean);
  CHECK(plain.plan.held_out.interval.hi < 2 * plain.plan.held_out.mean);
}

TEST_CASE("no plan has entries of a kind whose predictions fail") {
  Damages damages = damages_of({first_layer_matters, first_layer_matters}, costs);
  const methods::MethodInfo& q8_0 = methods::find_method("q8_0");
  damages.menu[2].method = {&q8_0, q8_0.bind({})};
  correct(damages, std::vector<replay::ReplayFrame::Prompt>{
                       {.id = "0", .anchors = {{"q4_0", "", {}, 0.04, 0.01}, {"q5_1", "", {}, 0.04, 0.01}}}});
  CHECK(damages.anchors_failure(2) == "measured 4 times the prediction");
  CHECK(damages.anchors_failure(0).empty());
  CHECK(damages.has_outside());
  CHECK(allocate::allocate(damages, Budget::parse("40%mem")).plan.plan == Plan{1, 1});
  CHECK(
      testing::contains(testing::message_of<NothingFits>([&] { allocate::allocate(damages, Budget::parse("19%mem")); }),
                        "fits in 19%mem, as far as their damage can be predicted; the smallest holds 20 %"));
}

TEST_CASE("a larger budget is no remedy where a layer can have nothing") {
  Damages damages = damages_of({first_layer_matters}, costs);
  damages.cost = {-1, -1, -1, 20000, 30000, 40000};
  CHECK(
      testing::message_of<NothingFits>([&] { allocate::allocate(damages, Budget::parse("30%mem")); }) ==
      "`menu`: no plan of its configurations is possible: some layer can have none of them; add one that it can have, "
      "such as exact");
}

TEST_CASE("documents weigh alike in the damage that plans are computed from") {
  const Damages damages = damages_of({first_layer_matters, times(first_layer_matters, 10)}, costs);
  const std::size_t first[] = {0}, both[] = {0, 1};
  const Choices one = choices_of(damages, first), two = choices_of(damages, both);
  for (std::size_t i = 0; i < one.damage.size(); ++i) CHECK(two.damage[i] == doctest::Approx(one.damage[i]));
}

// Relative to the geometric means of the entries of all layers, sqrt(0.5 * 4.5) = 1.5 and sqrt(0.5 * 40.5) = 4.5, the
// documents have 1/3 and 3, and 1/9 and 9. With power 1/2: ((sqrt(1/3) + 1/3) / 2)^2 and ((sqrt(3) + 3) / 2)^2.
TEST_CASE("documents are drawn towards each other by a mean of powers") {
  Damages damages = damages_of({{1, 3}, {1, 9}}, {30000, 30000});
  damages.places.pop_back(), damages.cost.resize(2);
  const std::size_t both[] = {0, 1};
  const std::vector<double> plain = choices_of(damages, both).damage, drawn = choices_of(damages, both, 0.5).damage;
  CHECK(plain[0] == doctest::Approx((1 / 3.0 + 1 / 9.0) / 2));
  CHECK(plain[1] == doctest::Approx(6));
  CHECK(drawn[0] == doctest::Approx(std::pow((std::sqrt(1 / 3.0) + 1 / 3.0) / 2, 2)));
  CHECK(drawn[1] == doctest::Approx(std::pow((std::sqrt(3.0) + 3) / 2, 2)));
  Damages lacking = damages_of({{1, 3, 1, 3}}, {30000, 30000});
  lacking.cost[3] = -1;  // so that the mean is that of entry 0, 1
  CHECK(choices_of(lacking, std::span(both).first(1)).damage[0] == doctest::Approx(0.5));
}

TEST_CASE(
    "what a plan adds to the probes comes from the entry of each layer, for each seed of those that have several") {
  Damages damages = damages_of({{1, 2, 3, 4}}, {10000, 20000});
  damages.documents[0].sums[1] = {2, 5};  // layer 0, entry 1: two seeds
  const replay::ProbeSums sums = sums_of(damages, 0, {1, 0});
  CHECK(sums.seeds == 2);
  CHECK(sums.sums == std::vector<double>{2, 5, 3, 3});
}

// Two pieces, two probes, one token: 1 and 2 for the first piece, 3 and -1 for the second. The squares of the pieces
// are 1 + 4 + 9 + 1 = 15, those of the probes (1 + 3)^2 + (2 - 1)^2 = 17.
TEST_CASE("damages add up the squares of pieces, and a plan is predicted from whole probes") {
  Damages damages = damages_of({{0, 0, 0, 0}}, {10000, 20000});
  damages.documents[0].probes = damages.documents[0].pieces = 2;
  damages.documents[0].sums = {{1, 2, 3, -1}, {1, 2, 3, -1, 2, 4, 6, -2}, {0, 0, 0, 0}, {0, 1, 0, 0}};
  const std::size_t one[] = {0};
  const Choices choices = choices_of(damages, one);
  // The second entry has two seeds, of which the second does four times the damage: (1 + 4) / 2.
  CHECK(choices.damage[1] / choices.damage[0] == doctest::Approx(2.5));
  CHECK(choices.damage[3] / choices.damage[0] == doctest::Approx(1 / 15.0));
  const replay::ProbeSums sums = sums_of(damages, 0, {1, 0});
  CHECK(sums.sums == std::vector<double>{4, 1, 8, 2, 0, 0, 0, 0});
  CHECK(damages.mean_of(sums_of(damages, 0, {0, 0})) == doctest::Approx(17 / 2.0 / 2));
}

TEST_CASE("the grid of budgets runs from 1/32 to all of the memory and has those that are asked for") {
  const Budget asked[] = {Budget::parse("20%mem"), Budget::parse("25%mem")};
  const std::vector<Budget> grid = budget_grid(asked);
  CHECK(grid.size() == 17);
  CHECK(grid.front().text() == "3.125%mem");
  CHECK(grid.back().text() == "100%mem");
  CHECK(std::ranges::count(grid, asked[0]) == 1);
  CHECK(std::ranges::count(grid, asked[1]) == 1);
}
