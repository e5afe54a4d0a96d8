// SPDX-License-Identifier: Apache-2.0
// Exact rows: what a method holds at every time of a stream, against an independent recomputation in fp64 from the same draws. The
// recomputations are in the files beside this one. They follow the text of the papers and share no code with the methods except the
// generator of random numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

/// An entry of a cache; wN and wD as in EntryTable.
struct HeldEntry {
  TokenId id = -1;
  double num = 1, den = 1;
  std::vector<double> key, value;  ///< of merged entries; empty: those of the token
};

/// The entries of a cache after `tokens` tokens of the stream, by increasing id.
struct Snapshot {
  Index tokens = 0;
  std::vector<HeldEntry> held;
};

/// A context of `prompt` tokens, after which `appended` tokens arrive one by one.
struct StreamPlan {
  Index prompt = 0, appended = 0;
  Index budget = 1;
  std::uint32_t seed = 0;
  std::string text() const;  ///< for CheckRow::params
};
/// A context of all but the last `appended` tokens of the subject.
StreamPlan whole_stream(const Subject& subject, Index appended, Index budget, std::uint32_t seed);

/// The implementation under test. Mutants replace it.
using MethodUnderTest = std::function<MakeCache(const HeadPrompt&, Backend&)>;
MethodUnderTest registered_method(const std::string& name, const std::vector<Assignment>& settings = {});

/// The entries after the prompt and after each appended token: appended + 1 snapshots. With an empty prompt the keys of the
/// stream are the calibration keys.
std::vector<Snapshot> observe_stream(const Subject& subject, const StreamPlan& plan, const MethodUnderTest& method,
                                     Backend& backend);

/// The snapshots of the recomputation. A method computes in fp32, so a decision whose two sides differ by less than the rounding
/// of fp32 can fall either way: `decided` counts the snapshots before the first such decision, and the others are not compared.
struct OracleRun {
  std::vector<Snapshot> times;
  Index decided = 0;
};

/// Adds a row of kind `exact`: failures are the snapshots in which an id is missing or additional, a weight differs by more than
/// 1e-5 of itself, or a merged key or value by more than 1e-4 of its norm. Not applicable where no snapshot is decided.
void add_oracle_row(CheckContext& context, const std::string& part, const std::string& params,
                    std::span<const Snapshot> observed, const OracleRun& expected);

}  // namespace kvbench
