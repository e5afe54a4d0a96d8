// SPDX-License-Identifier: Apache-2.0
// Replays inside a check: several methods on the same queries, averaged over independent units.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/claims.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench {

/// A method of the registry with these parameters.
MethodChoice method_choice(const std::string& name, const std::vector<Assignment>& settings = {});

/// Number of layers on which claims about a whole trace are replayed: more would dominate the time of a run of all checks.
inline constexpr std::size_t replayed_layers = 5;

/// At most `count` layers of the trace, evenly spaced from the first to the last of those without sliding window and softcap.
/// Throws Unavailable where there is none.
std::vector<std::int64_t> spread_layers(const trace::TraceInfo& trace, std::size_t count);

/// The results of a replay by independent unit. If a method of the request draws random numbers, a unit is a kv head with one
/// seed, because all its queries share the draws; otherwise it is a block of 16 neighbouring queries of a kv head. Unit i holds
/// the same queries and seeds for all configurations.
class PairedReplay {
 public:
  /// Replays on one thread: the checks themselves run in parallel.
  PairedReplay(const CheckContext& context, ReplayRequest request);

  /// Mean of a quantity over the queries and query heads of each unit; NaN where the quantity applies to none of them. Throws
  /// Unavailable with the reason where no head ran this method at this budget.
  std::vector<double> units(std::size_t method, std::size_t budget, const std::function<double(const MetricRow&)>& of) const;
  std::vector<double> units(std::size_t method, std::size_t budget, Metric metric) const;

  bool seeded() const;
  /// The index in results().heads of the head of each unit, where units are blocks of queries.
  std::vector<std::size_t> unit_heads() const;

  /// The budget in tokens on the first head.
  Index tokens(std::size_t budget) const;
  const ReplayRequest& request() const { return request_; }
  const ReplayResults& results() const { return results_; }
  /// "layers=0,1,4;seeds=2;unit=head and seed"
  std::string text() const;

 private:
  ReplayRequest request_;
  ReplayResults results_;
};

/// a - b for each unit.
std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace kvbench
