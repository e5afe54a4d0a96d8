// SPDX-License-Identifier: Apache-2.0
// The thing under test in SubGen's checks: what the registry's method `subgen` keeps for one seed, and the logits and answers
// that the attention kernel makes of it. Checks take it as a function, so that tests can put a faulty one in its place.
#pragma once

#include <functional>
#include <memory>

#include <kvbench/bounds/subgen/subgen_data.hpp>

namespace kvbench {

struct SubgenSketch {
  std::vector<TokenId> ids;      ///< entries
  std::vector<double> num, den;  ///< their weights in z and in tau
  std::vector<double> logits;    ///< [m, entries]; empty where no queries were asked
  std::vector<double> answers;   ///< [m, dv] z / tau; empty as above
};
using Sketcher = std::function<SubgenSketch(std::uint32_t seed)>;

/// Runs the method on the first tokens of a subject. Keeps references to both arguments.
class SubgenRunner {
 public:
  SubgenRunner(const Subject& subject, const SubgenSetup& setup, Backend& backend);

  /// After all tokens, with logits and answers of the subject's queries.
  SubgenSketch answered(std::uint32_t seed) const;
  /// After all tokens, entries alone.
  SubgenSketch kept(std::uint32_t seed) const;
  /// Entries after `context` tokens at once and each of the next `appended` ones.
  std::vector<SubgenSketch> stream(Index context, Index appended, std::uint32_t seed) const;
  Footprint footprint() const;

 private:
  SubgenSketch read(const CompressedCache& cache, bool answers) const;

  const Subject& subject_;
  const SubgenSetup& setup_;
  Backend& backend_;
  MakeCache make_;
  QueryBlock block_;
};

/// exp(logit - shift) of each entry for one query.
std::vector<double> subgen_exponentials(const SubgenSketch& sketch, Index query, double shift);
/// tau of these exponentials. A token's exponential is at most cap[token] where `cap` is given: the laws of z and tau hold for
/// any numbers in place of the exponentials.
double subgen_tau(const SubgenSketch& sketch, std::span<const double> exponentials, std::span<const double> cap = {});
/// z [dv], in the same way.
std::vector<double> subgen_z(const Subject& subject, const SubgenSketch& sketch, std::span<const double> exponentials,
                             std::span<const double> cap = {});

}  // namespace kvbench
