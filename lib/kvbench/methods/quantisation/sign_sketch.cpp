// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/quantisation/sign_sketch.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include <kvbench/methods/quantisation/group_codec.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::methods {
namespace {

using kernels::GroupFormat;

Buffer<const float> zeros(Index rows, Index cols, Backend& backend) {
  auto out = backend.allocate<float>(rows, cols);
  backend.fill(out, 0.0f);
  return out;
}

}  // namespace

RowNorms norms_of(const Buffer<const float>& rows, Backend& backend) {
  const GroupScaleArrays scales = scales_of(rows, {.group = rows.cols(), .scale = kernels::Scale::norm}, backend);
  return {scales.scale, scales.stored_scale};
}

Buffer<const float> sign_estimates(const Buffer<const float>& rows, const Buffer<const float>& norms,
                                   const MatrixPair& sketch, Backend& backend) {
  const Index n = rows.rows(), m = sketch.matrix.rows();
  // Dividing by a positive norm keeps signs, and a sketched number is at least the smallest positive one if it is
  // positive.
  const GroupFormat format = {.group = m, .grid = kernels::Grid::codebook, .bits = 1};
  const auto codes = backend.allocate<std::uint8_t>(n, m);
  const Buffer<const float> offset = zeros(n, 1, backend);
  backend.run(
      kernels::EncodeGroups<Buffer>{.rows = projected(rows, sketch.matrix, backend),
                                    .format = format,
                                    .scale = norms,
                                    .offset = offset,
                                    .midpoints = backend.adopt<float>({std::numeric_limits<float>::denorm_min()}, 1),
                                    .codes = codes});
  const auto level = static_cast<float>(std::sqrt(std::numbers::pi / 2) / static_cast<double>(m));
  const auto signs = backend.allocate<float>(n, m);
  backend.run(kernels::DecodeGroups<Buffer>{.codes = codes,
                                            .format = format,
                                            .scale = norms,
                                            .offset = offset,
                                            .levels = backend.adopt<float>({-level, level}, 2),
                                            .out = signs});
  return projected(signs, sketch.transpose, backend);
}

Buffer<const float> combined(const Buffer<const std::uint8_t>& codes, int zero, const Buffer<const float>& factors,
                             const Buffer<const float>& sums, Backend& backend) {
  const Index n = factors.rows(), d = factors.cols();
  const auto out = backend.allocate<float>(n, d);
  backend.run(kernels::DecodeGroups<Buffer>{.codes = codes,
                                            .format = {.group = 1, .bits = 1, .zero = zero},  // a scale for each number
                                            .scale = factors,
                                            .offset = sums.present() ? sums : zeros(n, d, backend),
                                            .out = out});
  return out;
}

Buffer<const float> difference(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend) {
  const Index n = a.rows(), d = a.cols();
  const auto none = backend.adopt(std::vector<std::uint8_t>(static_cast<std::size_t>(n * d)), n, d);
  return combined(none, 1, b, a, backend);  // (0 - 1) b + a
}

}  // namespace kvbench::methods
