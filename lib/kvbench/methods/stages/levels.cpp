// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/levels.hpp>

#include <kvbench/methods/stages/stages.hpp>

namespace kvbench {

std::vector<Buffer<std::int32_t>> level_buffers(Index rows, std::span<const Index> counts, Backend& backend) {
  std::vector<Buffer<std::int32_t>> levels;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    levels.push_back(backend.allocate<std::int32_t>(rows, counts[s] - (s + 1 < counts.size() ? counts[s + 1] : 0)));
  }
  return levels;
}

void best_by_level(const Buffer<const float>& scores, const Buffer<const std::int32_t>& first,
                   const Buffer<const std::int32_t>& last, std::span<const Index> counts,
                   std::span<const Buffer<std::int32_t>> levels, BlockMemo* memo, Backend& backend) {
  kernels::TopK<Buffer> select{.scores = scores, .first = first, .last = last};
  const auto run = [&] { backend.run(select); };
  for (std::size_t s = 0; s < counts.size() && counts[s] > 0; ++s) {
    const Index k = counts[s], next = s + 1 < counts.size() ? counts[s + 1] : 0;
    if (k == next) continue;
    select.ids = next == 0 ? levels[s] : backend.allocate<std::int32_t>(scores.rows(), k);
    select.best = next == 0 ? Buffer<float>{} : backend.allocate<float>(scores.rows(), k);
    if (select.among.present() && memo != nullptr) {
      memo->ahead(backend, run);
    } else {
      run();
    }
    select.among = select.ids;
    select.among_scores = select.best;
    select.rest = levels[s];
  }
}

std::vector<Buffer<const std::int32_t>> best_by_level(const QueryBlock& queries, const Buffer<const float>& scores,
                                                      const Buffer<const std::int32_t>& first,
                                                      const Buffer<const std::int32_t>& last, std::span<const Index> counts,
                                                      Backend& backend) {
  if (counts.size() == 1 && counts.front() > 0) {
    return {best_columns(queries, scores, first, last, counts.front(), backend)};
  }
  const std::vector<Buffer<std::int32_t>> levels = level_buffers(scores.rows(), counts, backend);
  best_by_level(scores, first, last, counts, levels, queries.memo.get(), backend);
  return {levels.begin(), levels.end()};
}

}  // namespace kvbench
