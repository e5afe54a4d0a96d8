// SPDX-License-Identifier: Apache-2.0
// Replays inside a check: several methods on the same queries, averaged over independent units.
#pragma once

#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench::bounds {

/// A method of the registry with these parameters.
replay::MethodChoice method_choice(const std::string& name, const std::vector<methods::Assignment>& settings = {});

/// Number of layers on which claims about a whole trace are replayed: more would dominate the time of a run of all
/// checks.
inline constexpr std::size_t replayed_layers = 5;

/// At most `count` layers of the trace, evenly spaced from the first to the last of those without sliding window and
/// softcap. Throws Unavailable where there is none.
std::vector<std::int64_t> spread_layers(const trace::TraceInfo& trace, std::size_t count);

/// The results of a replay of methods without random numbers by independent unit, a block of 16 neighbouring queries of
/// a kv head. Unit i holds the same queries for all configurations.
class PairedReplay {
 public:
  /// Replays on one thread: the checks themselves run in parallel.
  PairedReplay(const CheckContext& context, replay::ReplayRequest request);

  /// Mean of a metric over the queries and query heads of each unit; NaN where it applies to none of them. Throws
  /// Unavailable with the reason where no head ran this method at this budget.
  std::vector<double> units(std::size_t method, std::size_t budget, replay::Metric metric) const;

  /// The index in results().heads of the head of each unit.
  std::vector<std::size_t> unit_heads() const;

  const replay::ReplayRequest& request() const { return request_; }
  const replay::ReplayResults& results() const { return results_; }
  /// "layers=0,1,4;unit=16 queries of a head"
  std::string text() const;

 private:
  replay::ReplayRequest request_;
  replay::ReplayResults results_;
};

}  // namespace kvbench::bounds
