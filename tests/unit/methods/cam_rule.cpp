// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/steps.hpp>

#include <kvbench/methods/merging/cam.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

CamRule rule_of(CamForm form, Index start, Index recent, Index divisor, GroupChoice group = {}) {
  return {.form = form, .group = group, .start = start, .recent = recent, .divisor = divisor};
}

}  // namespace

// Attention 8 1 2 6 4 0, start 1, window 4 from token 1 on.
TEST_CASE("cam compares a token with the next m, with the largest, or with the rest of the window") {
  const Gathered a = {{8, 1, 2, 6, 4, 0}};
  CHECK(merge_chance(rule_of(CamForm::streaming, 1, 4, 2), a, 0, 1) == doctest::Approx(1.0 / 4));  // 2 6
  CHECK(merge_chance(rule_of(CamForm::streaming, 1, 4, 3), a, 0, 1) == doctest::Approx(1.0 / 4));  // 2 6 4
  CHECK(merge_chance(rule_of(CamForm::streaming, 1, 4, 9), a, 0, 1) ==
        doctest::Approx(1.0 / 3));                                          // 2 6 4 0: the end of the window
  CHECK(merge_chance(rule_of(CamForm::streaming, 1, 2, 2), a, 0, 3) == 1);  // 6 over 2
  CHECK(merge_chance(rule_of(CamForm::eval, 1, 4, 4), a, 0, 1) == doctest::Approx(1.0 / 8));  // 8 of the start token
  CHECK(merge_chance(rule_of(CamForm::eval, 0, 4, 4), a, 0, 1) == doctest::Approx(1.0 / 6));  // 1 2 6 4
  CHECK(merge_chance(rule_of(CamForm::eval, 0, 2, 2), a, 0, 1) ==
        doctest::Approx(1.0 / 2));  // 1 2: not the token after
  CHECK(merge_chance(rule_of(CamForm::decode, 1, 5, 1), a, 0, 1) == doctest::Approx(1.0 / 4));  // 2 6 4 for any m
  CHECK(merge_chance(rule_of(CamForm::decode, 1, 2, 1), a, 0, 1) == 0);                         // nothing is left
}

TEST_CASE("cam: the probability is 0 without attention, and 1 where only the token itself has attention") {
  const Gathered a = {{0, 0, 0, 3, 0, 0}};
  for (const CamForm form : {CamForm::streaming, CamForm::eval}) {
    CHECK(merge_chance(rule_of(form, 1, 2, 2), a, 0, 1) == 0);
    CHECK(merge_chance(rule_of(form, 1, 2, 2), a, 0, 3) == 1);
  }
  CHECK(merge_chance(rule_of(CamForm::decode, 1, 4, 2), a, 0, 3) == 1);
}

// Heads 1 3 and 2 2 over tokens 0 and 1: 1/3 and 1; sums 3/5, maxima 2/3.
TEST_CASE("cam decides per query head, or per query group by the sum, mean or maximum of the attention") {
  const Gathered a = {{1, 3}, {2, 2}};
  const auto chance = [&](GroupChoice group, Index row) {
    return merge_chance(rule_of(CamForm::streaming, 0, 1, 1, group), a, row, 0);
  };
  CHECK(chance({}, 0) == doctest::Approx(1.0 / 3));
  CHECK(chance({}, 1) == 1);
  const auto kv_head = GroupChoice::Per::kv_head;
  CHECK(chance({kv_head, kernels::Reduction::mean}, 0) == doctest::Approx(3.0 / 5));
  CHECK(chance({kv_head, kernels::Reduction::sum}, 0) == doctest::Approx(3.0 / 5));
  CHECK(chance({kv_head, kernels::Reduction::max}, 0) == doctest::Approx(2.0 / 3));
}

TEST_CASE("cam splits its budget, and each form has its own m") {
  CamParams params;
  CHECK(cam_rule(params, 20).start == 4);
  CHECK(cam_rule(params, 20).recent == 16);
  CHECK(cam_rule(params, 20).divisor == 16);
  CHECK(cam_rule(params, 3).start == 2);
  CHECK(cam_rule(params, 1).start == 0);
  CHECK(cam_rule(params, 1).recent == 1);
  params.start_share = 0.5;
  CHECK(cam_rule(params, 7).start == 3);
  params.form = CamForm::eval;
  CHECK(cam_rule(params, 7).start == 4);
  CHECK(cam_rule(params, 8).start == 4);
  CHECK(cam_rule(params, 7).divisor == 3);
  params.form = CamForm::decode;
  CHECK(cam_rule(params, 7).start == 3);
  CHECK(cam_rule(params, 7).divisor == 32);
  params.merge = 5;
  CHECK(cam_rule(params, 7).divisor == 5);
}

// Three query heads, d 8, dv 6, context 48, budget 10 of which 4 are first tokens.
TEST_CASE("cam stores keys once, and the values and sums of the window per query head") {
  const HeadData head = random_head({}, 5, ref());
  const auto sizes = [&](std::vector<Assignment> settings, bool step) {
    const auto cache = open_cache("cam", std::move(settings), prompt_of(head, ref()), 10, 0);
    if (step) decode_step(*cache, head, 48);
    const Footprint arrays = cache->footprint();
    CHECK(cache->protected_tokens().sinks == 4);
    CHECK(arrays[0].cols == 8);
    CHECK(arrays[1].cols == 6);
    CHECK(arrays[2].cols == 6);
    std::vector<Index> rows;
    for (const FootprintArray& array : arrays) rows.push_back(array.rows);
    return rows;
  };
  using Rows = std::vector<Index>;
  CHECK(sizes({}, false) == Rows{10, 4, 3 * 6, 3 * 6});
  CHECK(sizes({}, true) == Rows{11, 4, 3 * 7, 3 * 7});
  CHECK(sizes({{"form", "eval"}}, true) == Rows{11, 4, 3 * 7, 3 * (4 + 7)});
  CHECK(sizes({{"form", "decode"}}, true) == Rows{10, 4, 3 * 6});
  CHECK(sizes({{"per", "kv_head"}}, true) == Rows{11, 4, 7, 7});
  CHECK(sizes({{"per", "kv_head"}, {"reduce", "max"}}, true) == Rows{11, 4, 7, 3 * 7});
}
