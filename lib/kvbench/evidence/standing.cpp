// SPDX-License-Identifier: Apache-2.0
#include <kvbench/evidence/standing.hpp>

#include <algorithm>

namespace kvbench::evidence {

std::string Standing::tested_over() const {
  for (const auto* list : {&worse, &tied}) {
    if (!list->empty()) return list->front().tested_over;
  }
  return "";
}

std::vector<const Mark*> Standing::ranked() const {
  std::vector<const Mark*> out = {&best};
  for (const auto* list : {&tied, &worse, &untested}) {
    for (const Mark& mark : *list) out.push_back(&mark);
  }
  std::ranges::stable_sort(out.begin() + 1, out.end(), {}, &Mark::ratio);
  return out;
}

Standing standing_of(std::vector<Mark> group, std::optional<std::size_t> best) {
  for (std::size_t i = 0; i < group.size(); ++i) group[i].row = i;
  const std::size_t first =
      best ? *best : static_cast<std::size_t>(std::ranges::min_element(group, {}, &Mark::mean) - group.begin());
  Standing out{.best = group[first], .tied = {}};
  out.best.ratio = 1;
  for (Mark& mark : group) {
    if (mark.row == first) continue;
    if (std::isnan(mark.ratio)) mark.ratio = mark.mean == out.best.mean ? 1 : mark.mean / out.best.mean;
    std::vector<Mark>& list = best && !mark.compared      ? out.elsewhere
                              : best && !mark.tied        ? out.untested
                              : mark.tied.value_or(false) ? out.tied
                                                          : out.worse;
    list.push_back(std::move(mark));
  }
  for (auto* list : {&out.tied, &out.worse, &out.untested, &out.elsewhere})
    std::ranges::stable_sort(*list, {}, &Mark::ratio);
  return out;
}

}  // namespace kvbench::evidence
