// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/sketch.hpp>

#include <algorithm>
#include <cmath>

#include <Eigen/Core>

#include <kvbench/kernels/normal.hpp>

namespace kvbench::kvdump {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Weights = llama::ResidualPath::Weights;

/// A Gaussian matrix [width, s] over sqrt(s), behind what the path multiplies its result with.
Matrix directions(const Weights& weights, int layer, std::uint32_t seed) {
  Matrix out(weights.width, sketch_columns);
  const double sigma = weights.factor / std::sqrt(static_cast<double>(sketch_columns));
  for (std::int64_t row = 0; row < weights.width; ++row) {
    const double scale = weights.norm.empty() ? sigma : sigma * double{weights.norm[static_cast<std::size_t>(row)]};
    for (std::int64_t c = 0; c < sketch_columns; ++c) {
      const PhiloxBlock counter{
          {static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(layer), 0}};
      out(row, c) = static_cast<float>(scale * standard_normal(philox4x32(counter, {seed, 0x736b6574U /* "sket" */})));
    }
  }
  return out;
}

/// The maps behind an RMS norm at each query, transposed and sketched. With y = W_O z of `width` channels, the root
/// mean square r of y, and the directions D, that of a query is (A - u v' / (width r^2)) / r, where A = W_O' D, u =
/// W_O' y and v = D' y.
struct NormMaps {
  Matrix linear, u, v;               ///< A [inputs, s]; u and v of each query: [m, inputs] and [m, s]
  Eigen::ArrayXf over_square, size;  ///< [m] 1 / (width r^2), and |map| (Frobenius)
  Eigen::ArrayXf over_root;          ///< [m] 1 / r

  NormMaps(const Weights& weights, const Matrix& projection, const Matrix& directions, const Matrix& outputs)
      : linear(projection * directions) {
    const Matrix y = outputs * projection;
    const auto width = static_cast<float>(weights.width);
    over_root = (y.rowwise().squaredNorm().array() / width + static_cast<float>(weights.eps)).rsqrt();
    over_square = over_root.square() / width;
    u = y * projection.transpose();
    v = y * directions;
    const Eigen::ArrayXf both = (v * linear.transpose()).cwiseProduct(u).rowwise().sum();
    const Eigen::ArrayXf squares = u.rowwise().squaredNorm().cwiseProduct(v.rowwise().squaredNorm());
    size = (linear.squaredNorm() - over_square * (2 * both - over_square * squares)).max(0).sqrt() * over_root;
  }

  /// The mean of the maps, each divided by its norm: its own norm is 1 where they are equal.
  Matrix mean() const {
    const Eigen::VectorXf shares = over_root / (size * static_cast<float>(size.size()));
    const Eigen::VectorXf others = shares.array() * over_square;
    return linear * shares.sum() - u.transpose() * (others.asDiagonal() * v);
  }
};

std::vector<float> flat(const Matrix& matrix) { return {matrix.data(), matrix.data() + matrix.size()}; }

}  // namespace

void Sketches::add(llama::LayerCapture& layer, const llama::ResidualPath& path) {
  Sketch& sketch = sketches_[layer.layer];
  if (layer.residual_norm.empty() || !path.knows(layer.layer)) return layer.residual_norm.clear();
  const bool first = sketch.matrix.empty();
  if (!first && !path.has_norm(layer.layer)) return;
  const Weights weights = path.weights(layer.layer);
  const Eigen::Map<const Matrix> projection(weights.projection.data(), weights.inputs, weights.width);
  const Matrix sketched = directions(weights, layer.layer, seed_);
  if (!path.has_norm(layer.layer)) {
    sketch.matrix = flat(projection * sketched);
    return;
  }
  const auto queries = std::ssize(layer.query_positions);
  const std::vector<float> outputs = llama::by_token(layer.output, layer.query_heads, queries);
  const NormMaps maps(weights, projection, sketched, Eigen::Map<const Matrix>(outputs.data(), queries, weights.inputs));
  if (!(maps.size > 0).all()) return layer.residual_norm.clear();
  if (first) {
    const Matrix mean = maps.mean();
    const double norm = mean.norm();
    // The gain of the sketch is the root mean square of the gains of the queries.
    sketch.norm = std::sqrt(maps.size.square().mean());
    sketch.misfit = std::sqrt(std::max(0.0, 2 - 2 * norm));
    sketch.matrix = flat(mean * static_cast<float>(sketch.norm / norm));
  }
  for (std::size_t i = 0; i < layer.residual_norm.size(); ++i)
    layer.residual_norm[i] *= static_cast<float>(sketch.norm / double{maps.size[static_cast<Eigen::Index>(i)]});
}

}  // namespace kvbench::kvdump
