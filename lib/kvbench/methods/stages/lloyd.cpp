// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/lloyd.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// -|c|^2 / 2 of each centroid: |x - c|^2 = |x|^2 - 2 (<x, c> - |c|^2 / 2).
Buffer<const float> l2_bias(const Buffer<const float>& centroids, Backend& backend) {
  const auto norms2 = backend.allocate<double>(centroids.rows());
  backend.run(kernels::SquaredNorms<Buffer>{.rows = centroids, .out = norms2});
  std::vector<float> bias;
  for (const double norm2 : backend.read(norms2)) bias.push_back(static_cast<float>(-norm2 / 2));
  return backend.adopt(std::move(bias), centroids.rows());
}

/// Assigns points to centroids. A point is compared only with centroids that moved since the last call, and with all
/// centroids where its own moved; the labels equal those of a full search.
class NearestCentroid {
 public:
  NearestCentroid(const Buffer<const float>& points, Distance distance, Backend& backend)
      : backend_(backend),
        distance_(distance),
        points_(distance == Distance::cosine ? normalized(points, backend) : points),
        labels_(backend.allocate<std::int32_t>(points.rows())),
        state_(backend.make_match_state(points.rows(), points.cols())) {}

  /// Labels of all points. `moved` [c]: whether a centroid differs from that of the last call; all 1 at the first call.
  std::vector<std::int32_t> to(const Buffer<const float>& centroids, const std::vector<std::int32_t>& moved,
                               const std::vector<std::int32_t>& labels) {
    kernels::BestMatch<Buffer> search{
        .points = points_,
        .candidates = distance_ == Distance::cosine ? normalized(centroids, backend_) : centroids,
        .pairs = compared_pairs(moved, labels),
        .state = state_.get(),
        .best = labels_};
    if (distance_ == Distance::l2) search.bias = l2_bias(centroids, backend_);
    if (!labels.empty()) search.moved = backend_.adopt(std::vector(moved), centroids.rows());
    backend_.run(search);
    return backend_.read(labels_);
  }

 private:
  /// Number of compared pairs, for the declared cost.
  static Index compared_pairs(const std::vector<std::int32_t>& moved, const std::vector<std::int32_t>& labels) {
    const auto movers = std::ranges::count(moved, 1);
    Index sum = 0;
    for (const std::int32_t label : labels)
      sum += moved[static_cast<std::size_t>(label)] != 0 ? std::ssize(moved) : movers;
    return sum;
  }

  Backend& backend_;
  Distance distance_;
  Buffer<const float> points_;
  Buffer<std::int32_t> labels_;
  std::shared_ptr<kernels::MatchState> state_;
};

/// Flags [c] of the centroids that a change of labels moves: those that gained or lost a point.
std::vector<std::int32_t> moved_by(const std::vector<std::int32_t>& old, const std::vector<std::int32_t>& now,
                                   std::size_t centroids) {
  std::vector<std::int32_t> moved(centroids, old.empty() ? 1 : 0);
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (old[i] != now[i]) moved[static_cast<std::size_t>(old[i])] = moved[static_cast<std::size_t>(now[i])] = 1;
  }
  return moved;
}

}  // namespace

Clustering lloyd(const Buffer<const float>& points, const std::vector<TokenId>& start, const LloydOptions& options,
                 Backend& backend) {
  const auto count = static_cast<Index>(start.size());
  const auto centroids = gathered(points, start, backend);
  Clustering result{.centroids = centroids, .fixed = count == 0};
  if (count == 0) return result;

  NearestCentroid nearest(points, options.distance, backend);
  const auto mass = backend.allocate<float>(count);
  std::vector<std::int32_t> moved(start.size(), 1);
  const auto assign = [&] {
    std::vector<std::int32_t> found = nearest.to(centroids, moved, result.labels);
    result.fixed = found == result.labels;
    moved = moved_by(result.labels, found, start.size());
    result.labels = std::move(found);
  };
  while (result.iterations < options.iterations) {
    assign();
    if (result.fixed) return result;
    std::vector<std::int32_t> labels = result.labels;
    // -1: the centroid does not move.
    for (std::int32_t& label : labels) label = moved[static_cast<std::size_t>(label)] != 0 ? label : -1;
    backend.run(kernels::MeanRows<Buffer>{
        .rows = points, .labels = backend.adopt(std::move(labels), points.rows()), .out = centroids, .mass = mass});
    ++result.iterations;
  }
  if (options.relabel) assign();
  return result;
}

}  // namespace kvbench::methods
