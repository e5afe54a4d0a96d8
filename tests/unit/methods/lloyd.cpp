// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>
#include <kvbench/methods/stages/lloyd.hpp>
#include <kvbench/methods/stages/rows.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Labels = std::vector<std::int32_t>;

/// Points of two dimensions.
Clustering run(std::vector<float> points, const std::vector<TokenId>& start, const LloydOptions& options) {
  const auto count = static_cast<Index>(points.size()) / 2;
  return lloyd(ref().adopt(std::move(points), count, 2), start, options, ref());
}

void check_centroids(const Clustering& found, const std::vector<double>& expected) {
  const std::vector<float> centroids = ref().read(found.centroids);
  REQUIRE(centroids.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(centroids[i] == doctest::Approx(expected[i]));
}

}  // namespace

// Centroids a = (1, 0), b = (0, 4). Point 2 = (3, 1): cosine .95 to a, .32 to b; distance^2 5 and 18; product 3 and 4.
// Point 3 = (1, 1.2): cosine .64 and .77; distance^2 1.44 and 8.84; product 1 and 4.8.
TEST_CASE("the distance determines the nearest centroid, and means are those of the points, not normalised") {
  const std::vector<float> points = {1, 0, 0, 4, 3, 1, 1, 1.2f};
  const auto once = [&](Distance distance) { return run(points, {0, 1}, {.distance = distance, .iterations = 1}); };
  CHECK(once(Distance::cosine).labels == Labels{0, 1, 0, 1});
  check_centroids(once(Distance::cosine), {2, .5, .5, 2.6});
  CHECK(once(Distance::l2).labels == Labels{0, 1, 0, 0});
  check_centroids(once(Distance::l2), {5.0 / 3, 2.2 / 3, 0, 4});
  CHECK(once(Distance::ip).labels == Labels{0, 1, 1, 1});
  check_centroids(once(Distance::ip), {1, 0, 4.0 / 3, 6.2 / 3});
}

// Points 0, 1, 9, 10 on a line, from 0 and 1: {0} {1 9 10}, then with centroids 0 and 20/3 {0 1} {9 10}, then fixed.
TEST_CASE("the loop ends where no label changes, or at its cap") {
  const std::vector<float> points = {0, 0, 1, 0, 9, 0, 10, 0};
  const LloydOptions l2{.distance = Distance::l2};
  const Clustering whole = run(points, {0, 1}, l2);
  CHECK(whole.fixed);
  CHECK(whole.iterations == 2);
  CHECK(whole.labels == Labels{0, 0, 1, 1});
  check_centroids(whole, {.5, 0, 9.5, 0});

  const Clustering once = run(points, {0, 1}, {.distance = Distance::l2, .iterations = 1});
  CHECK_FALSE(once.fixed);
  CHECK(once.labels == Labels{0, 1, 1, 1});
  check_centroids(once, {0, 0, 20.0 / 3, 0});

  // One more assignment to the last centroids, which do not change.
  const Clustering again = run(points, {0, 1}, {.distance = Distance::l2, .iterations = 1, .relabel = true});
  CHECK_FALSE(again.fixed);
  CHECK(again.labels == Labels{0, 0, 1, 1});
  check_centroids(again, {0, 0, 20.0 / 3, 0});
  CHECK(run(points, {0, 1}, {.distance = Distance::l2, .iterations = 2, .relabel = true}).fixed);
}

// All points have one direction, so that all cosines are 1: ties go to cluster 0, and cluster 1 keeps its initial
// centroid.
TEST_CASE("an empty cluster keeps its centroid") {
  const Clustering found = run({1, 0, 2, 0, 6, 0}, {0, 1}, {});
  CHECK(found.fixed);
  CHECK(found.labels == Labels{0, 0, 0});
  check_centroids(found, {3, 0, 2, 0});
}

// Cluster 0 takes all four at first, and its mean (1, 1) leaves the points along (1, 0) to the empty cluster.
TEST_CASE("an empty cluster may gain points later") {
  const Clustering found = run({1, 0, 3, 0, 0, 1, 0, 3}, {0, 1}, {});
  CHECK(found.labels == Labels{1, 1, 0, 0});
  check_centroids(found, {0, 2, 2, 0});
}

TEST_CASE("zero vectors and no clusters at all") {
  for (const Distance distance : {Distance::cosine, Distance::l2, Distance::ip}) {
    const Clustering zeros = run({0, 0, 0, 0, 0, 0}, {0, 2}, {.distance = distance});
    CHECK(zeros.labels == Labels{0, 0, 0});
    CHECK(zeros.fixed);
    check_centroids(zeros, {0, 0, 0, 0});
  }
  const Clustering none = run({}, {}, {});
  CHECK(none.labels.empty());
  CHECK(none.fixed);
}

namespace {

/// Compares every point with every centroid in every iteration.
Clustering plain(const Buffer<const float>& points, const std::vector<TokenId>& start, const LloydOptions& options,
                 Backend& backend) {
  const auto centroids = gathered(points, start, backend);
  const auto mass = backend.allocate<float>(centroids.rows());
  Clustering out{.centroids = centroids};
  const auto unit = [&](const Buffer<const float>& rows) -> Buffer<const float> {
    if (options.distance != Distance::cosine) return rows;
    const auto normal = backend.allocate<float>(rows.rows(), rows.cols());
    backend.run(kernels::NormalizeRows<Buffer>{.rows = rows, .out = normal});
    return normal;
  };
  const auto assign = [&] {
    const auto best = backend.allocate<std::int32_t>(points.rows());
    std::vector<float> bias;
    if (options.distance == Distance::l2) {
      const auto norms2 = backend.allocate<double>(centroids.rows());
      backend.run(kernels::SquaredNorms<Buffer>{.rows = centroids, .out = norms2});
      for (const double norm2 : backend.read(norms2)) bias.push_back(static_cast<float>(-norm2 / 2));
    }
    backend.run(kernels::BestMatch<Buffer>{
        .points = unit(points),
        .candidates = unit(centroids),
        .bias = bias.empty() ? Buffer<const float>{} : backend.adopt(std::vector(bias), centroids.rows()),
        .best = best,
        .score = backend.allocate<float>(points.rows())});
    return backend.read(best);
  };
  for (; out.iterations < options.iterations; ++out.iterations) {
    std::vector<std::int32_t> found = assign();
    out.fixed = found == out.labels;
    if (out.fixed) return out;
    out.labels = std::move(found);
    backend.run(kernels::MeanRows<Buffer>{.rows = points,
                                          .labels = backend.adopt(std::vector(out.labels), points.rows()),
                                          .out = centroids,
                                          .mass = mass});
  }
  if (options.relabel) out.labels = assign();
  return out;
}

}  // namespace

TEST_CASE("omitting comparisons changes no label and no bit of a centroid") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend(Isa::scalar), make_cpu_backend(best_isa())}) {
    CAPTURE(backend->isa());
    for (const Distance distance : {Distance::cosine, Distance::l2, Distance::ip}) {
      for (const bool ties : {false, true}) {
        constexpr Index n = 1500, d = 12, count = 210;
        std::vector<float> values;
        for (Index i = 0; i < n * d; ++i) {
          const PhiloxBlock words = philox4x32({{static_cast<std::uint32_t>(i), 0, 0, 0}}, {11, 7});
          const auto draw = static_cast<float>(words.x[0] % 1000) / 500 - 1;
          values.push_back(ties ? std::round(draw) : draw);  // many equal points and distances
        }
        std::vector<TokenId> start;
        for (Index c = 0; c < count; ++c) start.push_back(static_cast<TokenId>(c * 7));
        const auto points = backend->adopt(std::move(values), n, d);
        for (const Index iterations : {4, 300}) {
          const LloydOptions options{.distance = distance, .iterations = iterations, .relabel = iterations == 4};
          const Clustering fast = lloyd(points, start, options, *backend),
                           slow = plain(points, start, options, *backend);
          CHECK(fast.labels == slow.labels);
          CHECK(fast.iterations == slow.iterations);
          CHECK(backend->read(fast.centroids) == backend->read(slow.centroids));
        }
      }
    }
  }
}

namespace {

/// The entries that answer the query at `position`; token 4 is after the context.
std::vector<Entry> entries_of(const CompressedCache& cache, const HeadData& head, Index position = 4) {
  const QueryBlock block = query_block(head, position, position + 1, position + 1, ref());
  return visible_entries(head, cache.entries(block), block, ref())[0];
}

}  // namespace

// Keys 1 3 -2 -4, values 1 2 4 8, starts 0 and 2. In one dimension the cosine is the sign: {0 1} and {2 3}, keys 2 and
// -3, values 1.5 and 6, two tokens each.
TEST_CASE("kmeans answers from the means of keys and values, weighted by the number of tokens") {
  const HeadData head = small_head({1, 3, -2, -4, 0}, 4);
  const auto cache = open_cache("kmeans", {}, prompt_of(head, ref()), 2, 0);
  CHECK(entries_of(*cache, head) == std::vector<Entry>{{1, 2, 2, {2}, {1.5}}, {3, 2, 2, {-3}, {6}}});
  const QueryBlock block = query_block(head, 4, 5, 5, ref());
  const double a = 2 * std::exp(2.0), b = 2 * std::exp(-3.0);
  CHECK(answer(head, block, cache->entries(block), ref())[0] == doctest::Approx((a * 1.5 + b * 6) / (a + b)));

  // Decoded tokens are kept exactly.
  CHECK(append(*cache, token_block(head, 4, 5, ref())) == 1);
  CHECK(answer(head, block, cache->entries(block), ref())[0] == doctest::Approx((a * 1.5 + b * 6 + 16) / (a + b + 1)));
}

// Keys 1 2 9 10: one sign, so that the cosine puts all into cluster 0, while distances split them.
TEST_CASE("kmeans drops empty clusters, and distance=l2 depends on lengths") {
  const HeadData head = small_head({1, 2, 9, 10, 0}, 4);
  const auto cosine = open_cache("kmeans", {}, prompt_of(head, ref()), 2, 0);
  CHECK(entries_of(*cosine, head) == std::vector<Entry>{{3, 4, 4, {5.5}, {3.75}}});
  const auto l2 = open_cache("kmeans", {{"distance", "l2"}}, prompt_of(head, ref()), 2, 0);
  CHECK(entries_of(*l2, head) == std::vector<Entry>{{1, 2, 2, {1.5}, {1.5}}, {3, 2, 2, {9.5}, {6}}});
}

// Keys 0 9 1 10, starts 0 and 2: {0} {9 1 10} at first; a second iteration moves 1 over.
TEST_CASE("kmeans starts from evenly spaced tokens and stops after its iterations") {
  const std::vector<Assignment> once = {{"distance", "l2"}, {"iterations", "1"}};
  const HeadData line = small_head({0, 9, 1, 10, 5}, 4);
  const auto cache = open_cache("kmeans", once, prompt_of(line, ref()), 2, 0);
  CHECK(entries_of(*cache, line) == std::vector<Entry>{{0}, {3, 3, 3, {20.0f / 3}, {14.0f / 3}}});
  const auto ten = open_cache("kmeans", {{"distance", "l2"}}, prompt_of(line, ref()), 2, 0);
  CHECK(entries_of(*ten, line) == std::vector<Entry>{{2, 2, 2, {.5}, {2.5}}, {3, 2, 2, {9.5}, {5}}});
}

// Clusters {0 3} and {1 2}: a query at position 2 may attend to all tokens of the second only.
TEST_CASE("kmeans masks a cluster for queries that may not attend to all of it") {
  const HeadData head = small_head({1, -1, -1, 3, 0}, 4);
  const auto cache = open_cache("kmeans", {}, prompt_of(head, ref()), 3, 0);
  CHECK(ids_of(entries_of(*cache, head)) == Ids{2, 3});
  CHECK(ids_of(entries_of(*cache, head, 2)) == Ids{2});
}

// Two keys of one direction would be in one cluster; a budget of all tokens keeps both.
TEST_CASE("kmeans keeps all tokens where the budget holds them") {
  const HeadData head = small_head({1, 3, 3, -4, 0}, 4);
  for (const Index budget : {4, 9}) {
    const auto cache = open_cache("kmeans", {}, prompt_of(head, ref()), budget, 0);
    CHECK(entries_of(*cache, head) == std::vector<Entry>{{0}, {1}, {2}, {3}});
  }
}
