// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

struct Result {
  std::vector<float> out, max, log_sum_exp, scores;
};

Result attend(Buffer<const float> queries, Buffer<const float> keys, Buffer<const float> values,
              std::vector<std::int32_t> first, std::vector<std::int32_t> last, float scale) {
  const Index rows = queries.rows();
  auto out = ref().allocate<float>(rows, values.cols());
  auto max = ref().allocate<float>(rows);
  auto log_sum_exp = ref().allocate<float>(rows);
  auto scores = ref().allocate<float>(rows, keys.rows());
  ref().run(kernels::ExactAttention<Buffer>{queries, keys, values, column(ref(), first), column(ref(), last), scale,
                                            out, max, log_sum_exp, scores});
  return {ref().read(out), ref().read(max), ref().read(log_sum_exp), ref().read(scores)};
}

}  // namespace

TEST_CASE("exact attention weighs values by exp(scale <q, k>)") {
  const float ln2 = std::log(2.0f);
  const auto queries = matrix<float>(ref(), {{ln2, 0}});
  const auto keys =
      matrix<float>(ref(), {{2, 5}, {4, -7}, {0, 1}});  // scale 1/2: logits ln 2, 2 ln 2, 0: weights 2, 4, 1
  const auto values = matrix<float>(ref(), {{7, 0}, {0, 7}, {14, 7}});

  const Result r = attend(queries, keys, values, {0}, {3}, 0.5f);

  check_near(r.out, {4, 5});
  check_near(r.max, {2 * ln2});
  check_near(r.log_sum_exp, {std::log(7.0f)});
  check_near(r.scores, {ln2, 2 * ln2, 0});
}

TEST_CASE("query heads are stacked and share the ranges of their queries") {
  const auto queries = matrix<float>(ref(), {{0}, {0}, {0}, {0}});  // two heads of two queries
  const auto keys = matrix<float>(ref(), {{1}, {1}, {1}});
  const auto values = matrix<float>(ref(), {{3}, {6}, {12}});

  const Result r = attend(queries, keys, values, {0, 1}, {2, 3}, 1);

  check_near(r.out, {4.5f, 9, 4.5f, 9});
  check_near(r.scores, {0, 0, -kInfinity, -kInfinity, 0, 0, 0, 0, -kInfinity, -kInfinity, 0, 0});
}

TEST_CASE("a query that sees nothing answers 0 with logarithm -inf") {
  const auto queries = matrix<float>(ref(), {{1}});
  const auto keys = matrix<float>(ref(), {{1}, {2}});

  const Result r = attend(queries, keys, keys, {1}, {1}, 1);

  check_near(r.out, {0});
  check_near(r.max, {-kInfinity});
  check_near(r.log_sum_exp, {-kInfinity});
  check_near(r.scores, {-kInfinity, -kInfinity});
}
