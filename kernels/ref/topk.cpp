// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

template <>
void run(const TopK<HostMatrix>& op, Context&) {
  for (Index row = 0; row < op.scores.rows; ++row) {
    const float* scores = op.scores.row(row);
    std::vector<std::int32_t> columns;
    for (std::int32_t c = op.first[row]; c < op.last[row]; ++c) columns.push_back(c);
    std::stable_sort(columns.begin(), columns.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    columns.resize(std::min(columns.size(), static_cast<std::size_t>(op.ids.cols)));
    std::sort(columns.begin(), columns.end());
    columns.resize(static_cast<std::size_t>(op.ids.cols), -1);
    std::copy(columns.begin(), columns.end(), op.ids.row(row));
  }
}

}  // namespace kvbench::kernels::ref
