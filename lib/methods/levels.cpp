// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/levels.hpp>

#include <kvbench/methods/stages.hpp>

namespace kvbench {

std::vector<Buffer<const std::int32_t>> best_by_level(const QueryBlock& queries, const Buffer<const float>& scores,
                                                      const Buffer<const std::int32_t>& first,
                                                      const Buffer<const std::int32_t>& last, std::span<const Index> counts,
                                                      Backend& backend) {
  const auto none = [&] { return backend.allocate<std::int32_t>(scores.rows(), 0); };
  const auto best = [&](Index k, const Buffer<std::int32_t>& rest) {
    return k > 0 ? best_columns(queries, scores, first, last, k, backend, rest) : none();
  };
  std::vector<Buffer<const std::int32_t>> levels;
  Buffer<const std::int32_t> chosen = best(counts.front(), {});
  for (std::size_t s = 1; s < counts.size(); ++s) {
    if (counts[s] == counts[s - 1]) {
      levels.push_back(none());
    } else if (counts[s] == 0) {
      levels.push_back(std::exchange(chosen, none()));
    } else {
      const auto rest = backend.allocate<std::int32_t>(scores.rows(), counts[s - 1] - counts[s]);
      queries.memo->ahead(backend, [&] { chosen = best(counts[s], rest); });
      levels.push_back(rest);
    }
  }
  levels.push_back(chosen);
  return levels;
}

}  // namespace kvbench
