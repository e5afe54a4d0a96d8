// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

constexpr Index kSizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 130, 2050};

/// Runs `result(backend)` on the reference and on every back end under test.
template <class F>
void check(F result, const char* what) {
  const auto expected = result(*make_ref_backend());
  for_each_backend([&](Backend& backend) { check_equivalent(result(backend), expected, what); });
}

}  // namespace

TEST_CASE("gather equals the reference") {
  for (Index c : kSizes) {
    const auto source = Random().normal(20 * c);
    const auto ids = Random().integers(33, 0, 19);
    check(
        [&](Backend& b) {
          auto out = b.allocate<float>(33, c);
          b.run(kernels::GatherRows<Buffer>{b.adopt(source, 20, c), b.adopt(ids, 33), out});
          return b.read(out);
        },
        "gather");
  }
}

TEST_CASE("squared norms equal the reference") {
  for (Index c : kSizes) {
    const auto rows = Random().normal(5 * c);
    check(
        [&](Backend& b) {
          auto out = b.allocate<double>(5);
          b.run(kernels::SquaredNorms<Buffer>{b.adopt(rows, 5, c), out});
          return b.read(out);
        },
        "norms");
  }
}

TEST_CASE("softmax rows equal the reference") {
  for (Index n : kSizes) {
    auto scores = Random().normal(4 * n, 3);
    for (std::size_t j = 0; j < scores.size(); j += 5) scores[j] = -kInfinity;
    const std::vector<float> log_sum_exp = {2, -1, -kInfinity, 7};
    for (const bool norms : {false, true})
      check(
          [&](Backend& b) {
            auto out = b.allocate<float>(4, n), norm = b.allocate<float>(4);
            b.run(kernels::SoftmaxRows<Buffer>{b.adopt(scores, 4, n), b.adopt(log_sum_exp, 4), out, norm});
            return b.read(norms ? norm : out);
          },
          norms ? "norms" : "probabilities");
  }
}

TEST_CASE("rotation equals the reference") {
  for (const bool interleaved : {false, true})
    for (Index d : {2, 6, 64, 128}) {
      const auto rows = Random().normal(9 * d);
      const std::vector<std::int64_t> offsets = {0, 1, -1, 5, -300, 4095, 32767, 131071, -131071};
      check(
          [&](Backend& b) {
            auto out = b.allocate<float>(9, d);
            b.run(kernels::RotateRows<Buffer>{b.adopt(rows, 9, d), b.adopt(offsets, 9), 500000, d / 2 / 2 * 2,
                                              interleaved, out});
            return b.read(out);
          },
          "rotated");
    }
}

TEST_CASE("column sums equal the reference") {
  for (Index n : kSizes) {
    auto scores = Random().normal(3 * 11 * n, 3);
    auto log_sum_exp = Random(7).normal(3 * 11);
    for (float& x : log_sum_exp) x += 8;
    log_sum_exp[4] = -kInfinity;  // a query that sees nothing
    for (Index j = 0; j < n; ++j) scores[static_cast<std::size_t>(4 * n + j)] = -kInfinity;
    for (std::size_t i = 0; i < scores.size(); i += 6) scores[i] = -kInfinity;
    check(
        [&](Backend& b) {
          auto out = b.allocate<float>(3, n);
          b.run(kernels::ColumnSums<Buffer>{b.adopt(scores, 33, n), b.adopt(log_sum_exp, 33), out});
          return b.read(out);
        },
        "column sums");
  }
}

TEST_CASE("pooling equals the reference") {
  for (const auto mode : {kernels::Pooling::none, kernels::Pooling::max, kernels::Pooling::mean})
    for (Index kernel : {1, 3, 7})
      for (Index n : kSizes) {
        const auto rows = Random().normal(3 * n);
        check(
            [&](Backend& b) {
              auto out = b.allocate<float>(3, n);
              b.run(kernels::PoolRows<Buffer>{b.adopt(rows, 3, n), mode, kernel, out});
              return b.read(out);
            },
            "pooled");
      }
}

TEST_CASE("reduction equals the reference") {
  for (const auto mode : {kernels::Reduction::mean, kernels::Reduction::max, kernels::Reduction::sum})
    for (Index n : kSizes) {
      const auto rows = Random().normal(6 * n);
      check(
          [&](Backend& b) {
            auto out = b.allocate<float>(2, n);
            b.run(kernels::ReduceRows<Buffer>{b.adopt(rows, 6, n), mode, out});
            return b.read(out);
          },
          "reduced");
    }
}
