// SPDX-License-Identifier: Apache-2.0
// Values of results that several kinds of stored records have: what is stored of them, and what is checked before they
// are used. The checksums of a file say that its bytes are those that were written, not that kvbench wrote them. All
// checks throw std::out_of_range.
#pragma once

#include <stdexcept>
#include <string_view>

#include <kvbench/replay/records/results.hpp>
#include <kvbench/store/archive.hpp>

namespace kvbench::store {

inline void require(bool holds, const char* fault) {
  if (!holds) throw std::out_of_range(fault);
}

/// Names are UTF-8 text without control characters, as check_name() demands of those that kvbench reads.
void check_name(std::string_view name);
/// Reasons and notes are UTF-8 text, in which lines may end.
void check_message(std::string_view text);
/// Bytes, times and numbers of operations or tokens are finite and at least 0.
void check_amount(double amount);
void check_bytes(const replay::Bytes& bytes);
/// The value of a metric is within its limits, but for rounding, or NaN where it does not apply.
void check_metric(replay::Metric metric, double value);

template <class A>
void visit(A& archive, replay::Bytes& v) {
  archive(v.kv, v.meta, v.fast, v.slow, v.read, v.full);
}

}  // namespace kvbench::store
