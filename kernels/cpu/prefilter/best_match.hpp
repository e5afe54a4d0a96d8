// SPDX-License-Identifier: Apache-2.0
// The prefilter of best_match.cpp.
#pragma once

#include "../match_strips.hpp"
#if KVBENCH_WIDTH > 4
#include "int8_best_match.hpp"
#endif

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// The interface, implemented for instruction sets without products of 8-bit integers: every search is left to the
/// caller.
class NoMatchPrefilter {
 public:
  NoMatchPrefilter(const Match&, Context&) {}

  /// Finds the best candidates of the points of `count` strips: their numbers, and their scores if these are asked for.
  /// False where the caller has to search instead; the strips are then unchanged.
  bool match(MatchStrip*, Index) { return false; }

  /// The candidates that challenge() compares: those that have moved.
  void set_moved(PointList) {}

  /// As match(), for strips whose points had a candidate, op.best, that has not moved: they keep it unless a moved one
  /// is better. The ranges of the strips refer to the list of moved candidates, the candidates found are numbered as
  /// those of the operation.
  bool challenge(MatchStrip*, Index) { return false; }
};

#if KVBENCH_WIDTH > 4
using MatchPrefilter = Int8MatchPrefilter;
#else
using MatchPrefilter = NoMatchPrefilter;
#endif

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
