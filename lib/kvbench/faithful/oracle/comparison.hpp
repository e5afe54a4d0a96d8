// SPDX-License-Identifier: Apache-2.0
// Exact rows: what a method holds at every time of a stream, against an independent recomputation in fp64 from the same
// draws. The recomputations are in the files beside this one. They follow the text of the papers and share no code with
// the methods except the generator of random numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::faithful {

/// The snapshots of the recomputation. A method computes in fp32, so a decision whose two sides differ by less than the
/// rounding of fp32 can fall either way: `decided` counts the snapshots before the first such decision, and the others
/// are not compared.
struct OracleRun {
  std::vector<bounds::Snapshot> times;
  Index decided = 0;
};

/// Adds a row of kind `exact`: failures are the snapshots in which an id is missing or additional, a weight differs by
/// more than 1e-5 of itself, or a merged key or value by more than 1e-4 of its norm. Not applicable where no snapshot
/// is decided.
void add_oracle_row(bounds::CheckContext& context, const std::string& part, const std::string& params,
                    std::span<const bounds::Snapshot> observed, const OracleRun& expected);

}  // namespace kvbench::faithful
