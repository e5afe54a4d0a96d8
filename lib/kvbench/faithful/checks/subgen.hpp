// SPDX-License-Identifier: Apache-2.0
// SubGen (arXiv 2402.06082), Algorithm 1 as a whole: after the prompt and after each decoded token the method holds the
// tokens and the weights that the listing gives from the same draws. docs/theory/subgen.algorithm1.md.
#pragma once

#include <kvbench/faithful/oracle/subgen.hpp>

namespace kvbench::faithful {

/// A run of the method on the first tokens of a subject.
struct SubgenCase {
  enum class Radius { given, from_queries, from_budget };

  std::string part;
  bounds::StreamPlan plan;
  SubgenSizes sizes;  ///< with the radius in force
  Radius radius = Radius::given;
  double delta_r = 0;   ///< Radius::from_queries
  bool decided = true;  ///< whether the radius is

  std::vector<methods::Assignment> settings() const;  ///< of the method `subgen`
  std::string text() const;                           ///< for CheckRow::params
};
/// Streams with a long prompt, a short one and none; radii given, derived from observed queries, chosen by the budget.
std::vector<SubgenCase> subgen_cases(const bounds::Subject& subject, Backend& backend);

/// What an implementation holds at the times of observe_stream().
using SubgenStream = std::function<std::vector<bounds::Snapshot>(const SubgenCase&)>;
void check_subgen_algorithm(bounds::CheckContext& context, const SubgenStream& stream);

bounds::Check subgen_algorithm1();

}  // namespace kvbench::faithful
