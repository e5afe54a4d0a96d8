// SPDX-License-Identifier: Apache-2.0
// Replays inside a check: several methods on the same queries, averaged over independent units.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench::bounds {

/// A method of the registry with these parameters.
replay::MethodChoice method_choice(const std::string& name, const std::vector<methods::Assignment>& settings = {});

/// Number of layers on which claims about a whole trace are replayed, on all texts, and of those on which claims about
/// keys are tested: more would dominate the time of a run of all checks.
inline constexpr std::size_t replayed_layers = 10, measured_layers = 5;

/// At most `count` layers of the trace, evenly spaced from the first to the last of those without sliding window and
/// softcap. Throws Unavailable where there is none.
std::vector<std::int64_t> spread_layers(const trace::TraceInfo& trace, std::size_t count);

/// A metric of a method of the replay, at one of its budgets.
struct ReplayedMethod {
  std::size_t method, budget;
  replay::Metric metric = replay::Metric::rel_err;
};

/// The results of a replay by independent unit, a layer of a text or a block of 16 neighbouring queries of a kv head.
/// Unit i holds the same queries for all configurations.
class PairedReplay {
 public:
  /// Replays on one thread: the checks themselves run in parallel.
  PairedReplay(const CheckContext& context, replay::ReplayRequest request);

  /// Means over the queries and query heads of each block; NaN where the metric applies to none of them. Throws
  /// Unavailable with the reason where no head ran this method at this budget.
  std::vector<double> units(const ReplayedMethod& of) const;
  /// As units(), over the layers of each text: [texts][layers()], row-major.
  std::vector<double> places(const ReplayedMethod& of) const;
  std::vector<std::int64_t> layers() const;  ///< that were replayed

  /// The index in results().heads of the head of each unit of units().
  std::vector<std::size_t> unit_heads() const;

  const replay::ReplayRequest& request() const { return request_; }
  const replay::ReplayResults& results() const { return results_; }
  /// "layers=0,1,4"
  std::string text() const;

 private:
  using UnitOf = std::function<std::size_t(std::size_t head, std::size_t query)>;
  std::vector<double> means(const ReplayedMethod& of, std::size_t units, const UnitOf& unit_of) const;

  replay::ReplayRequest request_;
  replay::ReplayResults results_;
};

}  // namespace kvbench::bounds
