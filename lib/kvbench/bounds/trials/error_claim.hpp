// SPDX-License-Identifier: Apache-2.0
// Claims that one method has a smaller error than another.
#pragma once

#include <kvbench/bounds/trials/paired_replay.hpp>

namespace kvbench::bounds {

/// Two methods of a replay, by number: the error of `better` is below `allowed` times that of `other`.
struct ErrorClaim {
  std::size_t better, other;
  std::size_t budget = 0;
  double allowed = 1;
};

/// Adds the row of a claim. Over layers and texts, where these are units (trace::layers_are_units()), the logarithm of
/// allowed * error of other / error of better is tested (evidence::test_group()), and `measured` is the geometric mean
/// of this ratio; otherwise the difference of the errors over blocks of 16 queries. Without results the row is
/// untestable.
CheckRow& add_error_claim(CheckContext& context, const Statement& statement, const PairedReplay& replay,
                          const ErrorClaim& claim);

}  // namespace kvbench::bounds
