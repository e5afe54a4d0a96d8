// SPDX-License-Identifier: Apache-2.0
// The object of SubGen's checks: the entries of the method `subgen` of the registry for one seed, and the logits and
// answers that the attention kernel computes from them. Checks take it as a function, so that tests can replace it by a
// faulty one.
#pragma once

#include <functional>
#include <memory>

#include <kvbench/bounds/subgen/data.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::bounds {

struct SubgenSketch {
  std::vector<TokenId> ids;      ///< entries
  std::vector<double> num, den;  ///< their weights in z and in tau
  std::vector<double> logits;    ///< [m, entries]; empty without queries
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
  /// Of the cache of the first `context` tokens.
  methods::Footprint footprint(Index context) const;

 private:
  SubgenSketch read(Session& session, bool answers) const;
  Session session_of(Index context, std::uint32_t seed) const;

  const Subject& subject_;
  const SubgenSetup& setup_;
  Backend& backend_;
  methods::MakeCache make_;
  methods::QueryBlock block_;
};

/// error(sketch, query) over the trials of a context: [query][trial].
std::vector<std::vector<double>> errors_by_query(
    const CheckContext& context, std::size_t queries, Index trials, const Sketcher& sketcher,
    const std::function<double(const SubgenSketch&, std::size_t query)>& error);

/// exp(logit - shift) of each entry for one query.
std::vector<double> subgen_exponentials(const SubgenSketch& sketch, Index query, double shift);
/// tau of these exponentials.
double subgen_tau(const SubgenSketch& sketch, std::span<const double> exponentials);
/// z [dv] of these exponentials.
std::vector<double> subgen_z(const Subject& subject, const SubgenSketch& sketch, std::span<const double> exponentials);

}  // namespace kvbench::bounds
