// SPDX-License-Identifier: Apache-2.0
// The object of SubGen's checks: the entries of the method `subgen` of the registry for one seed, and the logits and
// answers that the attention kernel computes from them. Checks take it as a function, so that tests can replace it by a
// faulty one.
// What SubGen's theorems are stated in, in fp64 on the host and independent of the method: norms, exponentials,
// clusters.
#pragma once

#include <functional>
#include <memory>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/methods/sampling/leader_partition.hpp>
#include <kvbench/methods/sampling/subgen.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::bounds {

/// Values of the context, V [n, dv].
struct SubgenValues {
  std::vector<double> norms2;  ///< |v_i|^2
  double mu = 0;               ///< |V|_F^2
  double op2 = 0;              ///< |V|_op^2
  double largest = 0;          ///< max |v_i|
  double stable_rank() const { return mu / op2; }
};
/// Throws Unavailable where all values are zero.
SubgenValues subgen_values(const Subject& subject);

/// One query; everything relative to exp(shift).
struct SubgenQuery {
  double r = 0;                 ///< |scale * q|: the text has no 1/sqrt(d), so the scale is folded into q
  double shift = 0;             ///< largest logit
  std::vector<double> a;        ///< exp(logit - shift)
  double total = 0;             ///< Z
  double norm2 = 0;             ///< |a|^2
  std::vector<double> product;  ///< V^T a
  double product2 = 0;          ///< |V^T a|^2
};
std::vector<SubgenQuery> subgen_queries(const Subject& subject);
/// r of the theorem: the largest of them.
double largest_query(std::span<const SubgenQuery> queries);

/// How the method runs in a check: its parameters and the clusters that follow from them.
struct SubgenSetup {
  methods::SubgenParams params;        ///< params.delta = 0: not given
  Index budget = 0;                    ///< B
  Index slots = 0;                     ///< s
  methods::LeaderPartition partition;  ///< at the radius in force
  std::vector<double> sizes;           ///< n_i
  bool budget_radius = false;          ///< the budget chose the radius
  /// Also counts the sizes.
  void set_partition(methods::LeaderPartition clusters);
  double delta() const { return partition.radius; }
  Index clusters() const { return partition.clusters(); }
  std::vector<methods::Assignment> settings() const;
  std::string text() const;  ///< for CheckRow::params
};
/// Radius `delta` > 0, s = budget / 2, B = n/4. t = 0: as many samples as keep m't within n/2, from 1 to 64.
SubgenSetup radius_setup(const Subject& subject, double delta, Index t, Backend& backend);
/// The method's defaults at B = n/4: the budget chooses the radius.
SubgenSetup default_setup(const Subject& subject, Backend& backend);
/// The same clusters with one value slot, for checks that look at clusters alone: slots are most of the work.
SubgenSetup clusters_alone(SubgenSetup setup);
/// What the checks of clusters run at: delta r = 1/2, and the method's defaults.
std::vector<SubgenSetup> usual_setups(const Subject& subject, double r, Backend& backend);

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
