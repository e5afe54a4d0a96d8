// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_results.hpp>

namespace kvbench::report {

std::optional<compare::QueryValues> TableResults::read(std::size_t place, std::size_t configuration) const {
  const auto found = values_.find({place, configuration});
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::pair<std::size_t, bool> TableResults::place_of(RowKey key) {
  const auto [at, added] = known_places_.emplace(std::move(key), places_.size());
  if (added) places_.emplace_back();
  return {at->second, added};
}

std::size_t TableResults::configuration_of(const replay::RowIdentity& row, bool seeded, std::uint32_t seed) {
  const auto [at, added] = known_configurations_.emplace(
      Configuration(row.method, row.params, row.budget, seeded, seed), configurations_.size());
  if (added) configurations_.push_back({row.method, row.params, row.budget, seed, seeded});
  return at->second;
}

void TableResults::add_value(const replay::RowIdentity& row, const replay::Costs& costs, double value,
                             compare::QueryValues& values) {
  values.values.push_back(value);
  values.bytes_held = costs.bytes.of(CostKind::memory), values.bytes_read = costs.bytes.read;
  values.status = row.status;
  if (!row.ok()) values.reason = row.reason;
}

}  // namespace kvbench::report
