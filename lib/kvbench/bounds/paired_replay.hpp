// SPDX-License-Identifier: Apache-2.0
// Replays inside a check: methods on the same queries, seen as blocks of neighbouring queries.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/claims.hpp>
#include <kvbench/replay/replay.hpp>

namespace kvbench {

/// A method of the registry with parameters.
MethodChoice method_choice(const std::string& name, const std::vector<Assignment>& settings = {});

/// Layers on which the claims about a whole trace are replayed: as many as a run of all checks can afford.
inline constexpr std::size_t replayed_layers = 5;

/// At most `count` layers of the trace, evenly spread from its first to its last; only those without a sliding window and a
/// softcap. Throws Unavailable where there is none.
std::vector<std::int64_t> spread_layers(const trace::TraceInfo& trace, std::size_t count);

/// The results of a replay in units that are taken to be independent: where a method of the request draws, a kv head with one
/// seed, as all queries share its draws; else 16 neighbouring queries of a kv head. Units of all cells stand for the same
/// queries and seeds.
class PairedReplay {
 public:
  /// One thread: the checks themselves run on all processors.
  PairedReplay(const CheckContext& context, ReplayRequest request);

  /// Mean of a quantity over the queries and query heads of each unit; NaN where the unit has no value of it. Throws
  /// Unavailable with the reason where no head ran this method at this budget.
  std::vector<double> units(std::size_t method, std::size_t budget, const std::function<double(const MetricRow&)>& of) const;
  std::vector<double> units(std::size_t method, std::size_t budget, Metric metric) const;

  bool seeded() const;
  /// Of each unit of 16 queries, the index of its head in results().heads.
  std::vector<std::size_t> unit_heads() const;

  /// The budget in tokens, of the first head.
  Index tokens(std::size_t budget) const;
  const ReplayRequest& request() const { return request_; }
  const ReplayResults& results() const { return results_; }
  /// "layers=0,1,4;seeds=2;unit=head and seed"
  std::string text() const;

 private:
  ReplayRequest request_;
  ReplayResults results_;
};

/// By unit, a - b.
std::vector<double> differences(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace kvbench
