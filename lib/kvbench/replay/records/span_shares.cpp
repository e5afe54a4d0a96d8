// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/span_shares.hpp>

#include <vector>

#include <fmt/ranges.h>

namespace kvbench::replay {

void SpanShares::add(const std::string& name, double held, double all) {
  auto& [held_so_far, all_so_far] = counts_[name];
  held_so_far += held, all_so_far += all;
}

std::string SpanShares::text(bool lost) const {
  std::vector<std::string> parts;
  for (const auto& [name, tokens] : counts_.items()) {
    const double share = tokens.first / tokens.second;
    parts.push_back(fmt::format("{} {:.3f}", name, lost ? 1 - share : share));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace kvbench::replay
