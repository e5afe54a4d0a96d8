// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/skew.hpp>

#include <algorithm>
#include <iterator>

#include <Eigen/Eigenvalues>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
Buffer<const float> skewing(const Buffer<const float>& queries, Backend& backend) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Index d = queries.cols();
  const auto columns = transposed(queries, backend);
  const std::vector<float> gram = backend.read(inner_products(columns, columns, backend));
  // The right singular vectors of Q are the eigenvectors of Q'Q, which Eigen sorts by increasing eigenvalue. The error
  // of fp32 products affects only directions whose singular value is below a thousandth of the largest; those are never
  // chosen.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(
      Eigen::Map<const Matrix>(gram.data(), d, d).cast<double>());
  std::vector<float> rows(gram.size());
  Eigen::Map<Matrix>(rows.data(), d, d) = solver.eigenvectors().transpose().cast<float>();
  return backend.adopt(std::move(rows), d, d);
}

std::vector<float> column_weights(const Buffer<const float>& rows, const Buffer<const float>& directions,
                                  Backend& backend) {
  const Index count = directions.rows();
  const auto projected = inner_products(rows, directions, backend);
  const auto split = backend.allocate<float>(rows.rows(), 2 * count);
  backend.run(kernels::SplitSigns<Buffer>{.rows = projected, .out = split});
  auto means = backend.adopt(std::vector<float>(static_cast<std::size_t>(2 * count)), 1, 2 * count);
  const std::vector<std::int32_t> one_label(static_cast<std::size_t>(rows.rows()));
  backend.run(kernels::MeanRows<Buffer>{.rows = split,
                                        .labels = backend.adopt(one_label, rows.rows()),
                                        .out = means,
                                        .mass = backend.allocate<float>(1)});
  const std::vector<float> both = backend.read(means);
  std::vector<float> weights(static_cast<std::size_t>(count));
  for (std::size_t c = 0; c < weights.size(); ++c) weights[c] = both[c] - both[weights.size() + c];
  return weights;
}

std::vector<std::int32_t> heaviest(std::span<const float> weights, Index count) {
  std::vector<std::int32_t> order = token_range(0, std::ssize(weights));
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
    return weights[static_cast<std::size_t>(a)] > weights[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(std::min<Index>(count, std::ssize(weights))));
  std::ranges::sort(order);
  return order;
}

Partial make_partial(const SkewSample& sample, const Buffer<const float>& keys, double ratio, Backend& backend) {
  const auto wanted = std::max<Index>(1, static_cast<Index>(ratio * static_cast<double>(keys.cols())));
  const auto skew = skewing(sample.skewed_by, backend);
  std::vector<std::int32_t> columns = heaviest(column_weights(sample.queries, skew, backend), wanted);
  if (sample.keys.present()) {
    std::vector<std::int32_t> both;
    std::ranges::set_union(columns, heaviest(column_weights(sample.keys, skew, backend), wanted),
                           std::back_inserter(both));
    columns = std::move(both);
  }
  const auto directions = gathered(skew, std::move(columns), backend);
  return {directions, inner_products(keys, directions, backend)};
}

}  // namespace kvbench::methods
