// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/value_norms.hpp>

#include <vector>

#include <doctest/doctest.h>

#include <kvbench/kernels/philox.hpp>

using namespace kvbench;
using namespace kvbench::replay;

namespace {

using doctest::Approx;

std::vector<float> random_values(Index rows, Index dv) {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < rows * dv; ++i) {
    const PhiloxBlock words = philox4x32({{i, 0, 0, 0}}, {5, 9});
    // Columns of different size, so that the spectrum is not flat.
    values.push_back(static_cast<float>((uniform52(words.x[0], words.x[1]) - 0.4) / (1 + static_cast<double>(i % dv))));
  }
  return values;
}

void check_range(ValueNorms& norms, const std::vector<float>& values, Index dv, Index first, Index last) {
  norms.move_to(first, last);
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd v = Eigen::Map<const Rows>(values.data() + first * dv, last - first, dv).cast<double>();
  CAPTURE(first);
  CAPTURE(last);
  CHECK(norms.operator_norm() == Approx(Eigen::JacobiSVD<Eigen::MatrixXd>(v).singularValues()(0)).epsilon(1e-6));
  CHECK(norms.frobenius_norm() == Approx(v.norm()).epsilon(1e-9));
}

}  // namespace

TEST_CASE("norms of a growing range are those of a full decomposition") {
  const Index dv = 5, n = 600;
  const auto values = random_values(n, dv);
  ValueNorms norms(values, dv);
  for (Index last = 1; last < 12; ++last) check_range(norms, values, dv, 0, last);
  for (Index last = 12; last <= n; last += 97) check_range(norms, values, dv, 0, last);  // across whole blocks of 256
  check_range(norms, values, dv, 0, n);
}

TEST_CASE("norms of a sliding range are those of a full decomposition") {
  const Index dv = 4, n = 400;
  const auto values = random_values(n, dv);
  ValueNorms norms(values, dv);
  for (Index last = 7; last <= n; last += 13) check_range(norms, values, dv, last - 7, last);
}

TEST_CASE("the operator norm is found from any direction of values") {
  // The dominant direction changes; the first and the last are orthogonal to (1, 1, 1).
  const std::vector<float> values = {1, -1, 0, 2, 2, 2, 0, 9, -9};
  ValueNorms norms(values, 3);
  for (Index last = 1; last <= 3; ++last) check_range(norms, values, 3, 0, last);
}

TEST_CASE("norms of no values are zero") {
  const std::vector<float> values = {0, 0, 3, 4};
  ValueNorms norms(values, 2);
  norms.move_to(0, 1);
  CHECK(norms.operator_norm() == 0);
  CHECK(norms.frobenius_norm() == 0);
  norms.move_to(1, 2);
  CHECK(norms.operator_norm() == Approx(5));
  CHECK(norms.frobenius_norm() == Approx(5));
}
