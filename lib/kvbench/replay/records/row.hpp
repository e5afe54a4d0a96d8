// SPDX-License-Identifier: Apache-2.0
// What rows of replays and rows of evaluations have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kvbench/core/budget.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// What a row is about.
struct RowIdentity {
  std::string model, sha256;          ///< sha256: first 12 digits, of the trace or of the model that was evaluated
  std::string rope_layout;            ///< order of the channels that formats round, as TraceInfo::channel_order()
  std::optional<std::int64_t> layer;  ///< absent: all
  std::string device, isa, method, params;
  Budget budget;
  Status status = Status::ok;
  std::string reason;  ///< why it is not ok, what it leaves out, and notes of the method

  bool ok() const { return status == Status::ok; }
  /// "subgen t=4"
  std::string name() const { return params.empty() ? method : method + " " + params; }
};

/// Means per kv head.
struct Costs {
  double budget_tokens = 0;  ///< the budget in tokens
  double kept_tokens = 0;    ///< entries that answer a query, without those that the harness keeps exactly
  Bytes bytes;

  /// Bytes held, and read per query, divided by the bytes of the full cache.
  double held() const { return bytes.of(CostKind::memory) / bytes.full; }
  double read() const { return bytes.of(CostKind::read) / bytes.full; }
};

}  // namespace kvbench::replay
