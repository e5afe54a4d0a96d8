// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/rows.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace kvbench::methods {

std::vector<TokenId> token_range(Index first, Index count) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), static_cast<TokenId>(first));
  return ids;
}

Buffer<float> gathered(const Buffer<const float>& source, const Buffer<const std::int32_t>& ids, Backend& backend) {
  const auto out = backend.allocate<float>(ids.rows(), source.cols());
  backend.run(kernels::GatherRows<Buffer>{.source = source, .ids = ids, .out = out});
  return out;
}

Buffer<float> gathered(const Buffer<const float>& source, std::vector<std::int32_t> ids, Backend& backend) {
  const Index count = std::ssize(ids);
  return gathered(source, backend.adopt(std::move(ids), count), backend);
}

Buffer<const float> rows_at(const Buffer<const float>& source, const std::vector<std::int32_t>& ids, Backend& backend) {
  const auto breaks = [](std::int32_t a, std::int32_t b) { return b != a + 1; };
  if (ids.empty() || std::ranges::adjacent_find(ids, breaks) != ids.end()) return gathered(source, ids, backend);
  return source.slice(ids.front(), std::ssize(ids));
}

Buffer<const float> first_columns(const Buffer<const float>& source, Index count, Backend& backend) {
  if (source.size() == 0 || count == 0) return backend.allocate<float>(source.rows(), count);
  const Index part = std::gcd(source.cols(), count), stride = source.cols() / part;
  std::vector<std::int32_t> ids;
  for (Index i = 0; i < source.rows(); ++i)
    for (Index k = 0; k < count / part; ++k) ids.push_back(static_cast<std::int32_t>(i * stride + k));
  return gathered(source.reshaped(part), std::move(ids), backend).reshaped(count);
}

Buffer<const float> transposed(const Buffer<const float>& source, Backend& backend) {
  const std::vector<float> in = backend.read(source);
  const auto n = static_cast<std::size_t>(source.rows()), columns = static_cast<std::size_t>(source.cols());
  std::vector<float> out(in.size());
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t i = 0; i < n; ++i) out[c * n + i] = in[i * columns + c];
  }
  return backend.adopt(std::move(out), source.cols(), source.rows());
}

void copy_rows(const Buffer<const float>& source, const Buffer<float>& out, Backend& backend) {
  const Index count = source.rows();
  if (count == 0) return;
  backend.run(
      kernels::GatherRows<Buffer>{.source = source, .ids = backend.adopt(token_range(0, count), count), .out = out});
}

Buffer<float> plus_row(const Buffer<const float>& rows, const Buffer<const float>& row, float factor,
                       Backend& backend) {
  const Index n = rows.rows();
  const auto out = backend.allocate<float>(n + 1, rows.cols());
  copy_rows(row, out.slice(0, 1), backend);
  copy_rows(rows, out.slice(1, n), backend);
  backend.run(kernels::SpreadRows<Buffer>{
      .sources = backend.adopt(std::vector<std::int32_t>{0}, 1), .count = n, .factor = factor, .rows = out});
  return out.slice(1, n);
}

std::vector<double> squared_norms(const Buffer<const float>& rows, Backend& backend) {
  if (rows.rows() == 0) return {};
  const auto norms2 = backend.allocate<double>(rows.rows());
  backend.run(kernels::SquaredNorms<Buffer>{.rows = rows, .out = norms2});
  return backend.read(norms2);
}

Buffer<float> inner_products(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend) {
  const auto out = backend.allocate<float>(a.rows(), b.rows());
  backend.run(kernels::InnerProducts<Buffer>{.a = a, .b = b, .out = out});
  return out;
}

Buffer<const float> normalized(const Buffer<const float>& rows, Backend& backend) {
  const auto out = backend.allocate<float>(rows.rows(), rows.cols());
  backend.run(kernels::NormalizeRows<Buffer>{.rows = rows, .out = out});
  return out;
}

Buffer<float> mean_of_rows(const Buffer<const float>& rows, Backend& backend) {
  const auto out = backend.allocate<float>(1, rows.cols());
  backend.run(kernels::MeanRows<Buffer>{
      .rows = rows,
      .labels = backend.adopt(std::vector<std::int32_t>(static_cast<std::size_t>(rows.rows())), rows.rows()),
      .out = out,
      .mass = backend.allocate<float>(1)});
  return out;
}

Buffer<const float> projected(const Buffer<const float>& rows, const Buffer<const float>& matrix, Backend& backend) {
  const auto out = backend.allocate<float>(rows.rows(), matrix.rows());
  backend.run(kernels::ProjectRows<Buffer>{.rows = rows, .matrix = matrix, .out = out});
  return out;
}

ScoredRows scored_rows(const Buffer<const float>& queries, const Buffer<const float>& keys,
                       std::vector<std::int32_t> last, float scale, Backend& backend) {
  const Index rows = queries.rows(), m = std::ssize(last);
  auto none = backend.allocate<float>(keys.rows(), 1);  // values, which nobody asks for
  backend.fill(none, 0.0f);
  ScoredRows out{backend.allocate<float>(rows, keys.rows()), backend.allocate<float>(rows),
                 backend.allocate<float>(rows)};
  backend.run(kernels::ExactAttention<Buffer>{.queries = queries,
                                              .keys = keys,
                                              .values = none,
                                              .first = backend.adopt(std::vector<std::int32_t>(last.size(), 0), m),
                                              .last = backend.adopt(std::move(last), m),
                                              .scale = scale,
                                              .out = backend.allocate<float>(rows, 1),
                                              .max = out.max,
                                              .log_sum_exp = out.log_sum_exp,
                                              .scores = out.scores});
  return out;
}

Buffer<std::int32_t> best_columns(const Buffer<const float>& scores, Index first, Index last, Index count,
                                  Backend& backend) {
  const Index rows = scores.rows();
  const auto bound = [&](Index column) {
    return backend.adopt(std::vector(static_cast<std::size_t>(rows), static_cast<std::int32_t>(column)), rows);
  };
  const auto ids = backend.allocate<std::int32_t>(rows, count);
  if (count == 0) return ids;
  backend.run(kernels::TopK<Buffer>{.scores = scores, .first = bound(first), .last = bound(last), .ids = ids});
  return ids;
}

Buffer<float> GrowingRows::add(Index count) {
  const Index used = rows_.rows();
  if (used + count > storage_.rows() || !storage_.present()) {
    const auto larger = backend_->allocate<float>(2 * used + count, rows_.cols());
    copy_rows(rows_, larger.slice(0, used), *backend_);
    storage_ = larger;
  }
  rows_ = storage_.slice(0, used + count);
  return storage_.slice(used, count);
}

Buffer<float> GrowingRows::rewrite(Index first, Index count) {
  if (!storage_.present()) {
    const auto copy = backend_->allocate<float>(rows_.rows(), rows_.cols());
    copy_rows(rows_, copy, *backend_);
    rows_ = storage_ = copy;
  }
  return storage_.slice(first, count);
}

void GrowingRows::append(const Buffer<const float>& source, const std::vector<std::int32_t>& ids) {
  const Index count = std::ssize(ids);
  if (count == 0) return;
  const auto out = add(count);
  backend_->run(
      kernels::GatherRows<Buffer>{.source = source, .ids = backend_->adopt(std::vector(ids), count), .out = out});
}

}  // namespace kvbench::methods
