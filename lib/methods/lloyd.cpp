// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/lloyd.hpp>

#include <utility>

#include <kvbench/methods/stages.hpp>

namespace kvbench {
namespace {

Buffer<const float> normalized(const Buffer<const float>& rows, Backend& backend) {
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::NormalizeRows<Buffer>{.rows = rows, .out = out});
  return out;
}

/// -|c|^2 / 2 of each centroid: |x - c|^2 = |x|^2 - 2 (<x, c> - |c|^2 / 2).
Buffer<const float> l2_bias(const Buffer<const float>& centroids, Backend& backend) {
  const auto norms2 = backend.allocate<double>(centroids.rows());
  backend.run(kernels::SquaredNorms<Buffer>{.rows = centroids, .out = norms2});
  std::vector<float> bias;
  for (const double norm2 : backend.read(norms2)) bias.push_back(static_cast<float>(-norm2 / 2));
  return backend.adopt(std::move(bias), centroids.rows());
}

/// Gives points to centroids. A point is compared again only with centroids that moved, and with all where its own did: the
/// labels are those of comparing everything.
class NearestCentroid {
 public:
  NearestCentroid(const Buffer<const float>& points, Distance distance, Backend& backend)
      : backend_(backend), distance_(distance), points_(distance == Distance::cosine ? normalized(points, backend) : points) {}

  /// Labels of all points. `moved` [c]: whether a centroid differs from that of the last call; all do at the first.
  const std::vector<std::int32_t>& to(const Buffer<const float>& centroids, const std::vector<bool>& moved) {
    const Candidates all{distance_ == Distance::cosine ? normalized(centroids, backend_) : centroids,
                         distance_ == Distance::l2 ? l2_bias(centroids, backend_) : Buffer<const float>{}};
    std::vector<std::int32_t> movers, again, stayed;  // centroids; points whose own moved, and the others
    for (std::size_t c = 0; c < moved.size(); ++c) {
      if (moved[c]) movers.push_back(static_cast<std::int32_t>(c));
    }
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      (moved[static_cast<std::size_t>(labels_[i])] ? again : stayed).push_back(static_cast<std::int32_t>(i));
    }
    if (labels_.empty() || !pays(again.size(), stayed.size(), movers.size(), moved.size())) {
      Match match = best_of(points_, all);
      labels_ = std::move(match.best);
      scores_ = std::move(match.score);
      return labels_;
    }
    if (!again.empty()) {
      const Match match = best_of(gathered(points_, again, backend_), all);
      for (std::size_t i = 0; i < again.size(); ++i) set(again[i], match.best[i], match.score[i]);
    }
    if (!stayed.empty() && !movers.empty()) challenge(stayed, movers, all);
    return labels_;
  }

 private:
  struct Candidates {
    Buffer<const float> rows, bias;  // bias: absent, or [c]
  };
  struct Match {
    std::vector<std::int32_t> best;
    std::vector<float> score;
  };

  /// Copying a point costs about what comparing it with 32 centroids does.
  static bool pays(std::size_t again, std::size_t stayed, std::size_t movers, std::size_t centroids) {
    return again * (centroids + 32) + stayed * (movers + 32) < (again + stayed) * centroids * 9 / 10;
  }

  Match best_of(const Buffer<const float>& points, const Candidates& candidates) const {
    const auto best = backend_.allocate<std::int32_t>(points.rows());
    const auto score = backend_.allocate<float>(points.rows());
    backend_.run(kernels::BestMatch<Buffer>{
        .points = points, .candidates = candidates.rows, .bias = candidates.bias, .best = best, .score = score});
    return {backend_.read(best), backend_.read(score)};
  }

  void set(std::int32_t point, std::int32_t label, float score) {
    labels_[static_cast<std::size_t>(point)] = label;
    scores_[static_cast<std::size_t>(point)] = score;
  }

  /// Points with a centroid that stayed go to one that moved where it is nearer now, or as near and of a lower number.
  void challenge(const std::vector<std::int32_t>& points, const std::vector<std::int32_t>& movers, const Candidates& all) {
    const Candidates moved{gathered(all.rows, movers, backend_),
                           distance_ == Distance::l2 ? gathered(all.bias, movers, backend_) : Buffer<const float>{}};
    const Match match = best_of(gathered(points_, points, backend_), moved);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto point = static_cast<std::size_t>(points[i]);
      const std::int32_t label = movers[static_cast<std::size_t>(match.best[i])];
      if (match.score[i] > scores_[point] || (match.score[i] == scores_[point] && label < labels_[point])) {
        set(points[i], label, match.score[i]);
      }
    }
  }

  Backend& backend_;
  Distance distance_;
  Buffer<const float> points_;
  std::vector<std::int32_t> labels_;
  std::vector<float> scores_;  // of each point with its own centroid
};

/// Centroids [c] that the means of these labels move: those that won or lost a point.
std::vector<bool> moved_by(const std::vector<std::int32_t>& old, const std::vector<std::int32_t>& now, std::size_t centroids) {
  std::vector<bool> moved(centroids, old.empty());
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (old[i] != now[i]) moved[static_cast<std::size_t>(old[i])] = moved[static_cast<std::size_t>(now[i])] = true;
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
  std::vector<bool> moved(start.size(), true);
  while (result.iterations < options.iterations) {
    const std::vector<std::int32_t>& found = nearest.to(centroids, moved);
    result.fixed = found == result.labels;
    if (result.fixed) return result;
    moved = moved_by(result.labels, found, start.size());
    result.labels = found;
    const auto labels = backend.adopt(std::vector(found), points.rows());
    backend.run(kernels::MeanRows<Buffer>{.rows = points, .labels = labels, .out = centroids, .mass = mass});
    ++result.iterations;
  }
  if (options.relabel) {
    const std::vector<std::int32_t>& found = nearest.to(centroids, moved);
    result.fixed = found == result.labels;
    result.labels = found;
  }
  return result;
}

}  // namespace kvbench
