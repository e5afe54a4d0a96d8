// SPDX-License-Identifier: Apache-2.0
// vAttention (arXiv 2510.05688), sections 3 and 4: the denominator D' of the sampled attention is within eps D of the
// exact one with probability 1 - delta. Reading: the probability is over the draws of one query, and the claim is about
// its mean over the queries of a subject; it is asymptotic in the number of samples, whose deviation is estimated. The
// samples are those that the rule asks for, beyond any budget. Every query of a seed has draws of its own, so that
// queries and seeds are independent trials. docs/theory/vattention.coverage.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/bounds/trials/stream.hpp>

namespace kvbench::bounds {

/// The queries of a subject, their exact denominators, and those of caches.
class DenominatorErrors {
 public:
  DenominatorErrors(const Subject& subject, const MethodUnderTest& method, Backend& backend);
  /// |D' - D| / D of each query, with the entries of a cache of this budget and seed.
  std::vector<double> operator()(Index budget, std::uint32_t seed) const;

 private:
  Backend& backend_;
  methods::QueryBlock block_;
  methods::MakeCache make_;
  std::vector<std::vector<double>> shares_;  ///< [m][n] exp(logit) / D
};

/// Adds the row of one setting: of seeds times queries, how many errors are above eps.
void check_coverage(CheckContext& context, const std::string& part, double eps, double delta,
                    const MethodUnderTest& method);

Check vattention_coverage();

}  // namespace kvbench::bounds
