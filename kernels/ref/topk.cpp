// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

void write_row(std::vector<std::int32_t> columns, const HostMatrix<std::int32_t>& out, Index row) {
  std::sort(columns.begin(), columns.end());
  columns.resize(static_cast<std::size_t>(out.cols), -1);
  std::copy(columns.begin(), columns.end(), out.row(row));
}

}  // namespace

template <>
void run(const TopK<HostMatrix>& op, Context&) {
  for (Index row = 0; row < op.scores.rows; ++row) {
    const float* scores = op.scores.row(row);
    std::vector<std::int32_t> columns;
    const auto compete = [&](std::int32_t c) {
      if (op.first[row] <= c && c < op.last[row]) columns.push_back(c);
    };
    if (op.among.data != nullptr) std::for_each_n(op.among.row(row), op.among.cols, compete);
    for (std::int32_t c = op.first[row]; c < op.last[row] && op.among.data == nullptr; ++c) compete(c);
    std::stable_sort(columns.begin(), columns.end(), [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    const auto k = std::min(columns.size(), static_cast<std::size_t>(op.ids.cols));
    const std::vector<std::int32_t> rest(columns.begin() + static_cast<std::ptrdiff_t>(k), columns.end());
    columns.resize(k);
    write_row(columns, op.ids, row);
    const auto score = [&](std::int32_t c) { return c < 0 ? 0 : scores[c]; };
    if (!op.best.empty()) std::transform(op.ids.row(row), op.ids.row(row) + op.ids.cols, op.best.row(row), score);
    if (!op.rest.empty()) write_row(rest, op.rest, row);
  }
}

}  // namespace kvbench::kernels::ref
