// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/verdict.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/enumeration.hpp>

namespace kvbench {

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view names[] = {"supported", "contradicted", "undecided", "untestable",     "holds with margin",
                                        "holds",     "violated",     "vacuous",   "not applicable", "none"};
  return name_in(names, verdict);
}

Verdict claim_verdict(double p_adjusted, bool holds) {
  if (std::isnan(p_adjusted)) return Verdict::untestable;
  if (p_adjusted > decided_at) return Verdict::undecided;
  return holds ? Verdict::supported : Verdict::contradicted;
}

Verdict joint_verdict(std::span<const Verdict> instances) {
  const auto all = [&](Verdict verdict) {
    return std::ranges::all_of(instances, [&](Verdict v) { return v == verdict; });
  };
  if (all(Verdict::untestable)) return Verdict::untestable;
  if (std::ranges::find(instances, Verdict::contradicted) != instances.end()) return Verdict::contradicted;
  return all(Verdict::supported) ? Verdict::supported : Verdict::undecided;
}

}  // namespace kvbench
