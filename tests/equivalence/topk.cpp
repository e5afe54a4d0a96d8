// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

std::vector<std::int32_t> select(Backend& backend, const std::vector<float>& scores, Index rows, Index n, Index k,
                                 const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& last) {
  auto ids = backend.allocate<std::int32_t>(rows, k);
  backend.run(
      kernels::TopK<Buffer>{backend.adopt(scores, rows, n), backend.adopt(first, rows), backend.adopt(last, rows), ids});
  return backend.read(ids);
}

/// Scores [., n] of the columns in ids [., k], 0 where there is none.
std::vector<float> look_up(const std::vector<float>& scores, Index n, const std::vector<std::int32_t>& ids, Index k) {
  std::vector<float> found;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Index row = static_cast<Index>(i) / k;
    found.push_back(ids[i] < 0 ? 0 : scores[static_cast<std::size_t>(row * n + ids[i])]);
  }
  return found;
}

/// What is left of the columns `among` [rows, .] when k are taken, on `backend` and on the reference.
void check_rest(Backend& backend, const std::vector<float>& scores, const std::vector<std::int32_t>& first,
                const std::vector<std::int32_t>& last, const std::vector<std::int32_t>& among, Index k) {
  const Index rows = std::ssize(first), listed = std::ssize(among) / rows;
  const auto rest_of = [&](Backend& b) {
    const auto rest = b.allocate<std::int32_t>(rows, listed - k);
    b.run(kernels::TopK<Buffer>{.scores = b.adopt(scores, rows, std::ssize(scores) / rows),
                                .first = b.adopt(first, rows),
                                .last = b.adopt(last, rows),
                                .ids = b.allocate<std::int32_t>(rows, k),
                                .among = b.adopt(among, rows, listed),
                                .rest = rest});
    return b.read(rest);
  };
  check_equivalent(rest_of(backend), rest_of(*make_ref_backend()), "rest");
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

TEST_CASE("top-k among the columns of a larger k equals top-k among all") {
  const Index rows = 6, n = 900;
  auto scores = Random().lattice(rows * n, 20);  // many ties
  for (std::size_t i = 0; i < scores.size(); i += 11) scores[i] = -kInfinity;
  const std::vector<std::int32_t> first = {0, 0, 100, 300, 0, 899}, last = {900, 400, 900, 310, 0, 900};
  for_each_backend([&](Backend& backend) {
    const auto values = backend.adopt(scores, rows, n);
    const auto begin = backend.adopt(first, rows), end = backend.adopt(last, rows);
    Buffer<std::int32_t> among;
    Buffer<float> among_scores;
    for (Index k : {500, 120, 119, 7, 1}) {
      CAPTURE(k);
      auto ids = backend.allocate<std::int32_t>(rows, k);
      auto best = backend.allocate<float>(rows, k);
      backend.run(kernels::TopK<Buffer>{values, begin, end, ids, among, {}, best});
      const std::vector<std::int32_t> expected = select(*make_ref_backend(), scores, rows, n, k, first, last);
      check_equivalent(backend.read(ids), expected, "ids");
      check_equivalent(backend.read(best), look_up(scores, n, expected, k), "best");
      backend.run(kernels::TopK<Buffer>{values, begin, end, ids, among, among_scores, best});
      check_equivalent(backend.read(ids), expected, "ids by the scores of the larger k");
      check_equivalent(backend.read(best), look_up(scores, n, expected, k), "best by the scores of the larger k");
      if (among.present()) check_rest(backend, scores, first, last, backend.read(among), k);
      among = ids;
      among_scores = best;
    }
  });
}

TEST_CASE("top-k among listed columns leaves out those outside the range") {
  const std::vector<float> scores = {9, 1, 8, 2, 7, 3};
  for_each_backend([&](Backend& backend) {
    auto ids = backend.allocate<std::int32_t>(1, 3);
    const auto among = backend.adopt(std::vector<std::int32_t>{0, 1, 3, 4, 5, -1}, 1, 6);
    const auto first = backend.adopt(std::vector<std::int32_t>{1}, 1), last = backend.adopt(std::vector<std::int32_t>{5}, 1);
    backend.run(kernels::TopK<Buffer>{backend.adopt(scores, 1, 6), first, last, ids, among});
    CHECK(backend.read(ids) == std::vector<std::int32_t>{1, 3, 4});
  });
}

TEST_CASE("top-k of scores that a sample misjudges") {
  // Of 4096 scores, the first 4, 8 or 16 of every 32, 64 or 128 are the largest, which are the ones that the vectors of some
  // width sample, and the other way round.
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
