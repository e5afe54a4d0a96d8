// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/coming_queries.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <Eigen/Eigenvalues>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// The queries of a text before RoPE: those that its trace holds, turned back
/// by their positions.
struct QueriesBeforeRope {
  Buffer<const float> rows;  ///< [G*m, d], row g*m + i
  Index count = 0;           ///< m
  Rope rope;

  Buffer<const float> of_head(Index g) const { return rows.slice(g * count, count); }
};

/// The rows [k, d] turned by these positions.
Buffer<float> turned(const Buffer<const float>& rows, std::vector<std::int64_t> positions, const Rope& rope,
                     Backend& backend) {
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::RotateRows<Buffer>{.rows = rows,
                                          .offsets = backend.adopt(std::move(positions), rows.rows()),
                                          .theta = rope.theta,
                                          .rotary_dims = rows.cols(),
                                          .interleaved = rope.interleaved,
                                          .out = out});
  return out;
}

/// Those of the calibration text, or else of the context, at positions from
/// `first` on. Positions count from the first token of the context. Where the
/// harness keeps tokens before it, queries are turned back by too little, and
/// ahead by as much too little, which cancels.
QueriesBeforeRope queries_before_rope(const HeadPrompt& evaluated, std::string_view method, Index first,
                                      Backend& backend) {
  if (evaluated.calibration && evaluated.fixed_log_sum_exp.present()) {
    throw Unavailable(
        fmt::format("{} takes queries of another text to the "
                    "positions of the whole context; replay it "
                    "without --protect",
                    method));
  }
  const HeadPrompt& head = evaluated.calibration ? *evaluated.calibration : evaluated;
  if (!head.rope || head.keys.cols() % 2 != 0) {
    throw Unavailable(
        fmt::format("{} turns queries back by the model's RoPE, and there is no unscaled RoPE over an even head "
                    "dimension",
                    method));
  }
  const Index all = std::ssize(head.observed_positions);
  const Index begin = std::ranges::lower_bound(head.observed_positions, first) - head.observed_positions.begin();
  if (!head.observed.present() || begin == all) {
    throw Unavailable(
        fmt::format("{} needs queries of the context from position {} on, and there are none; replay a trace that has "
                    "them (--queries)",
                    method, first));
  }
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> back;
  for (Index g = 0; g < head.group; ++g) {
    for (Index i = begin; i < all; ++i) {
      rows.push_back(static_cast<std::int32_t>(g * all + i));
      back.push_back(-head.observed_positions[static_cast<std::size_t>(i)]);
    }
  }
  return {turned(rows_at(head.observed, rows, backend), std::move(back), *head.rope, backend), all - begin, *head.rope};
}

/// The position after the last token of the prompt.
Index next_position(const HeadPrompt& head) {
  const auto& observed = head.observed_positions;
  return observed.empty() ? head.tokens() : std::max<Index>(head.tokens(), observed.back() + 1);
}

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Mean [d] and covariance [d, d], divided by the number of queries, of one
/// query head.
struct QueryMoments {
  std::vector<double> mean, covariance;
};

/// Of the queries [m, d] of one query head.
QueryMoments moments_of(const Buffer<const float>& queries, Backend& backend) {
  const auto size = static_cast<std::size_t>(queries.cols());
  const Buffer<const float> columns = transposed(queries, backend);
  const TokenNumbers products = on_host(projected(columns, columns, backend), backend) / double(queries.rows());
  const TokenNumbers mean = on_host(mean_of_rows(queries, backend), backend);
  QueryMoments moments{{std::begin(mean), std::end(mean)}, std::vector<double>(size * size)};
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      moments.covariance[i * size + j] = products[i * size + j] - mean[i] * mean[j];
  return moments;
}

/// The mean rotation of the positions first, ..., first + count - 1.
Rows mean_rotation(Index d, Index first, Index count, const Rope& rope) {
  Rows rotation = Rows::Zero(d, d);
  for (Index p = 0; p < d / 2; ++p) {
    const double frequency = std::pow(rope.theta, -2.0 * static_cast<double>(p) / static_cast<double>(d));
    double cosine = 0, sine = 0;
    for (Index t = first; t < first + count; ++t) {
      cosine += std::cos(static_cast<double>(t) * frequency) / static_cast<double>(count);
      sine += std::sin(static_cast<double>(t) * frequency) / static_cast<double>(count);
    }
    const Index a = rope.interleaved ? 2 * p : p, b = rope.interleaved ? 2 * p + 1 : p + d / 2;
    rotation(a, a) = rotation(b, b) = cosine;
    rotation(a, b) = -sine, rotation(b, a) = sine;
  }
  return rotation;
}

/// R mean and R covariance R'.
QueryMoments rotated(const QueryMoments& moments, const Rows& rotation) {
  const Index d = rotation.rows();
  QueryMoments out = moments;
  Eigen::Map<Eigen::VectorXd>(out.mean.data(), d) =
      rotation * Eigen::Map<const Eigen::VectorXd>(moments.mean.data(), d);
  Eigen::Map<Rows>(out.covariance.data(), d, d) =
      rotation * Eigen::Map<const Rows>(moments.covariance.data(), d, d) * rotation.transpose();
  return out;
}

/// A matrix as rows of fp32.
Buffer<const float> adopted(const Rows& matrix, Backend& backend) {
  std::vector<float> rows(static_cast<std::size_t>(matrix.size()));
  std::transform(matrix.data(), matrix.data() + matrix.size(), rows.begin(),
                 [](double x) { return static_cast<float>(x); });
  return backend.adopt(std::move(rows), matrix.rows(), matrix.cols());
}

/// ln of the mean of exp(scale <q, k>) over normal queries with these moments,
/// for each key.
TokenNumbers expected_logits(const Buffer<const float>& keys, const QueryMoments& moments, float scale,
                             Backend& backend) {
  const Index d = keys.cols();
  // covariance = V' diag(values) V, so that k' covariance k =
  // |diag(sqrt(values)) V k|^2.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::Map<const Rows>(moments.covariance.data(), d, d));
  const Rows root = solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() * solver.eigenvectors().transpose();
  const Rows mean = Eigen::Map<const Rows>(moments.mean.data(), 1, d);
  const auto spread = norms2(projected(keys, adopted(root, backend), backend), backend);
  return double{scale} * on_host(projected(keys, adopted(mean, backend), backend), backend) +
         double{scale} * double{scale} / 2 * spread;
}

/// The channels [n, d] with those that RoPE turns together side by side.
Buffer<const float> paired(const Buffer<const float>& rows, const Rope& rope, Backend& backend) {
  if (rope.interleaved) return rows;
  const Index d = rows.cols();
  Rows order = Rows::Zero(d, d);
  for (Index p = 0; p < d / 2; ++p) order(2 * p, p) = order(2 * p + 1, p + d / 2) = 1;
  return projected(rows, adopted(order, backend), backend);
}

/// Lengths [n, d/2] of the pairs of channels that RoPE turns together, which no rotation changes.
Buffer<const float> pair_norms(const Buffer<const float>& rows, const Rope& rope, Backend& backend) {
  const auto array = [&] { return backend.allocate<float>(rows.rows(), rows.cols() / 2); };
  const auto out = array();
  backend.run(kernels::GroupScales<Buffer>{.rows = paired(rows, rope, backend),
                                           .format = {.group = 2, .scale = kernels::Scale::norm},
                                           .scale = out,
                                           .inverse = array(),
                                           .offset = array(),
                                           .stored_scale = array(),
                                           .stored_offset = array()});
  return out;
}

/// a - b, element by element, of small rows.
Buffer<const float> difference(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend) {
  std::vector<float> out = backend.read(a);
  std::ranges::transform(out, backend.read(b), out.begin(), std::minus());
  return backend.adopt(std::move(out), a.rows(), a.cols());
}

}  // namespace

TokenNumbers expected_weights(const HeadPrompt& head, std::string_view method, Index first, Index count,
                              Backend& backend) {
  const QueriesBeforeRope queries = queries_before_rope(head, method, first, backend);
  const Rows rotation = mean_rotation(head.keys.cols(), next_position(head), count, queries.rope);
  const Buffer<const float> keys = head.keys.slice(first, head.tokens() - first);
  TokenNumbers sum(static_cast<std::size_t>(keys.rows()));
  for (Index g = 0; g < head.group; ++g) {
    const QueryMoments next = rotated(moments_of(queries.of_head(g), backend), rotation);
    sum += softmax(expected_logits(keys, next, head.scale, backend));
  }
  return sum / static_cast<double>(head.group);
}

TokenNumbers ahead_scores(const HeadPrompt& head, std::string_view method, Index reach, Backend& backend) {
  const QueriesBeforeRope queries = queries_before_rope(head, method, std::numeric_limits<Index>::min(), backend);
  std::vector<std::int64_t> ahead;
  for (Index offset = 1; offset <= reach; offset *= 2) ahead.push_back(next_position(head) + offset);
  const auto key_lengths = pair_norms(head.keys, queries.rope, backend);
  const auto query_lengths = pair_norms(queries.rows, queries.rope, backend);
  const auto n = static_cast<std::size_t>(head.tokens());
  TokenNumbers scores(static_cast<std::size_t>(head.group) * n);
  for (Index g = 0; g < head.group; ++g) {
    const Buffer<const float> mean = mean_of_rows(queries.of_head(g), backend);
    const Buffer<const float> copies = gathered(mean, std::vector<std::int32_t>(ahead.size()), backend);
    const Buffer<const float> direction = mean_of_rows(turned(copies, ahead, queries.rope, backend), backend);
    const Buffer<const float> scatter =
        difference(mean_of_rows(query_lengths.slice(g * queries.count, queries.count), backend),
                   pair_norms(mean, queries.rope, backend), backend);
    const TokenNumbers own = on_host(projected(head.keys, direction, backend), backend) +
                             on_host(projected(key_lengths, scatter, backend), backend);
    scores[std::slice(static_cast<std::size_t>(g) * n, n, 1)] = z_scores(own);
  }
  return scores;
}

float early_attention(const HeadPrompt& text, std::string_view method, Index count, Backend& backend) {
  const QueriesBeforeRope queries = queries_before_rope(text, method, 0, backend);
  const auto at = [&](const Buffer<const float>& mean, std::vector<std::int64_t> positions) {
    return turned(gathered(mean, std::vector<std::int32_t>(positions.size()), backend), positions, queries.rope,
                  backend);
  };
  std::vector<std::int64_t> along(static_cast<std::size_t>(count));
  std::iota(along.begin(), along.end(), 0);
  const auto keys = at(mean_of_rows(keys_before_rope(text, method, backend), backend), along);
  double area = 0;
  for (Index g = 0; g < text.group; ++g) {
    const auto query = at(mean_of_rows(queries.of_head(g), backend), {count - 1});
    const TokenNumbers weights = softmax(double{text.scale} * on_host(projected(keys, query, backend), backend));
    for (Index j = 0; j < count; ++j)  // the weight of j is in the attention up to each of the last count - j positions
      area += weights[static_cast<std::size_t>(j)] * static_cast<double>(count - j);
  }
  return static_cast<float>(area / static_cast<double>(count * text.group));
}

Buffer<const float> keys_before_rope(const HeadPrompt& head, std::string_view method, Backend& backend) {
  if (head.keys_pre_rope.present()) return head.keys_pre_rope;
  if (!head.rope || head.keys.cols() % 2 != 0)
    throw Unavailable(
        fmt::format("{} needs keys before RoPE, and there are neither these nor an unscaled RoPE; replay a trace that "
                    "has them (--pre-rope)",
                    method));
  std::vector<std::int64_t> back;
  for (Index i = 0; i < head.tokens(); ++i) back.push_back(-i);
  return turned(head.keys, std::move(back), *head.rope, backend);
}

}  // namespace kvbench::methods
