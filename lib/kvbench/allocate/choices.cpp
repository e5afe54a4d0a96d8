// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/choices.hpp>

#include <algorithm>
#include <cmath>

namespace kvbench::allocate {
namespace {

/// c^2 / (2 T), mean over seeds and probes.
std::vector<double> damage_in(const DocumentDamage& document) {
  std::vector<double> damage(document.sums.size());
  for (std::size_t i = 0; i < damage.size(); ++i) {
    for (const double c : document.sums[i]) damage[i] += c * c;
    if (damage[i] > 0) damage[i] /= static_cast<double>(2 * document.scored * document.sums[i].size());
  }
  return damage;
}

/// The geometric mean over the entries that all layers can have of the sum over layers; 1 where none does damage.
double typical_damage(const Choices& choices) {
  double logs = 0, count = 0;
  for (std::size_t e = 0; e < choices.entries; ++e) {
    const double total = has_everywhere(choices, e) ? damage_of(choices, Plan(choices.layers, e)) : 0;
    if (total > 0) logs += std::log(total), count += 1;
  }
  return count > 0 ? std::exp(logs / count) : 1;
}

}  // namespace

Choices choices_of(const Damages& damages, std::span<const std::size_t> documents) {
  Choices out{damages.places.size(), damages.menu.size(), {}, damages.cost};
  out.damage.resize(out.cost.size());
  for (const std::size_t d : documents) {
    Choices own = out;
    own.damage = damage_in(damages.documents[d]);
    const double typical = typical_damage(own) * static_cast<double>(documents.size());
    for (std::size_t i = 0; i < own.damage.size(); ++i) out.damage[i] += own.damage[i] / typical;
  }
  return out;
}

replay::ProbeSums sums_of(const Damages& damages, std::size_t document, const Plan& plan) {
  const DocumentDamage& of = damages.documents[document];
  replay::ProbeSums out{.scored = of.scored, .layers = plan.size(), .seeds = 1, .probes = of.probes};
  const auto sums = [&](std::size_t l) -> const std::vector<double>& {
    return of.sums[l * damages.menu.size() + plan[l]];
  };
  for (std::size_t l = 0; l < plan.size(); ++l) out.seeds = std::max(out.seeds, sums(l).size() / of.probes);
  for (std::size_t l = 0; l < plan.size(); ++l) {
    for (std::size_t i = 0; i < out.seeds * of.probes; ++i) out.sums.push_back(sums(l)[i % sums(l).size()]);
  }
  return out;
}

}  // namespace kvbench::allocate
