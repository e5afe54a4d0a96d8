// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

std::vector<std::int32_t> select(Backend& backend, const std::vector<float>& scores, Index rows, Index n, Index k,
                                 const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& last) {
  auto ids = backend.allocate<std::int32_t>(rows, k);
  backend.run(kernels::TopK<Buffer>{backend.adopt(scores, rows, n), backend.adopt(first, rows),
                                    backend.adopt(last, rows), ids});
  return backend.read(ids);
}

void check(const std::vector<float>& scores, Index rows, Index n, Index k) {
  std::vector<std::int32_t> first, last;
  for (Index r = 0; r < rows; ++r) {
    first.push_back(static_cast<std::int32_t>(r % 3 == 2 ? n / 3 : 0));
    last.push_back(static_cast<std::int32_t>(n - (r % 4 == 3 ? n / 4 : 0)));
  }
  const auto expected = select(*make_ref_backend(), scores, rows, n, k, first, last);
  for_each_backend(
      [&](Backend& backend) { check_equivalent(select(backend, scores, rows, n, k, first, last), expected, "ids"); });
}

}  // namespace

TEST_CASE("top-k equals the reference") {
  for (Index n : {0, 1, 7, 8, 9, 31, 100, 1025, 5000})
    for (Index k : {0, 1, 2, 16, 500, 6000}) {
      CAPTURE(n);
      CAPTURE(k);
      check(Random().normal(5 * n), 5, n, k);
    }
}

TEST_CASE("top-k with many equal scores, masked scores and both zeros") {
  auto scores = Random().lattice(8 * 700, 3);
  for (std::size_t i = 0; i < scores.size(); i += 5) scores[i] = -kInfinity;
  for (std::size_t i = 1; i < scores.size(); i += 7) scores[i] = -0.0f;
  for (Index k : {1, 100, 350, 650, 700}) check(scores, 8, 700, k);
}

TEST_CASE("top-k of scores that differ in the last bits alone") {
  auto noise = Random().integers(3 * 2000, 0, 900);
  std::vector<float> scores;
  for (std::int32_t step : noise) scores.push_back(1 + static_cast<float>(step) * 0x1p-23f);
  for (Index k : {1, 77, 1999}) check(scores, 3, 2000, k);
}

TEST_CASE("top-k of scores that a sample misjudges") {
  // Of 4096 scores, the first 4, 8 or 16 of every 32, 64 or 128 are the largest, which are the ones that the vectors of
  // some width sample, and the other way round.
  for (Index width : {4, 8, 16})
    for (const float sampled : {5.0f, -5.0f}) {
      CAPTURE(width);
      CAPTURE(sampled);
      auto scores = Random().normal(4 * 4096);
      for (std::size_t i = 0; i < scores.size(); ++i)
        if (i / static_cast<std::size_t>(width) % 8 == 0) scores[i] += sampled;
      for (Index k : {1, 300, 700, 1000, 1024}) check(scores, 4, 4096, k);
    }
}
