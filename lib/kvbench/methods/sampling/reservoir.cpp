// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/reservoir.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvbench::methods {
namespace {

bool later(const Reservoir::Slot& a, const Reservoir::Slot& b) { return a.next > b.next; }

}  // namespace

Reservoir::Reservoir(Index slots, std::uint32_t first_draw) {
  for (Index j = 0; j < slots; ++j) slots_.push_back({-1, 0, 0, first_draw + static_cast<std::uint32_t>(j)});
}

void Reservoir::offer(const Draws& draws, TokenId token, double weight) {
  if (weight == 0) return;
  total_ += weight;
  // M/U may round to M itself, and a slot must not be refilled twice by one token.
  const double earliest = std::nextafter(total_, std::numeric_limits<double>::infinity());
  while (slots_.front().next <= total_) {
    std::ranges::pop_heap(slots_, later);
    Slot& slot = slots_.back();
    slot.token = token;
    slot.weight = weight;
    slot.next = std::max(total_ / draws.uniform(token, slot.draw), earliest);
    std::ranges::push_heap(slots_, later);
  }
}

}  // namespace kvbench::methods
