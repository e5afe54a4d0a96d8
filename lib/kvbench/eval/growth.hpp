// SPDX-License-Identifier: Apache-2.0
// Whether damage grows with the context: KL of the same scored tokens behind contexts of several lengths.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/eval/damage.hpp>

namespace kvbench::eval {

/// Mean KL of a document, in nats per token, by document.
using KlByDocument = std::map<std::string, double>;
/// By the tokens of the context; the scored tokens of a document are the same at all lengths.
using KlByLength = std::map<Index, KlByDocument>;
/// The geometric mean, with Student's 95 % interval over documents; NaN for the interval of one.
Estimate geometric_mean(const KlByDocument& kl);

/// KL below which rounding may decide. An exact cache has less (apps/kveval/README.md): about 1e-11 with weights in
/// fp32 (SmolLM2-135M, 512 to 2048 tokens).
inline constexpr double kl_floor = 1e-6;
/// "Does not grow" excludes this factor per doubling of the context, and all above it.
inline constexpr double growth_margin = 1.1;

/// `grows`, `shrinks`: the interval excludes 1. `does_not_grow`: it has 1, and its upper end is at most the margin.
enum class Growing { grows, shrinks, does_not_grow, cannot_tell };
std::string_view name_of(Growing growing);

struct Growth {
  Growing verdict = Growing::cannot_tell;
  std::string reason;           ///< why there is no interval
  std::vector<Index> lengths;   ///< of contexts, ascending, that the factor is about
  std::vector<Index> at_floor;  ///< left out: some document has a KL below kl_floor there
  std::vector<Estimate> kl;     ///< at these lengths: geometric mean over the documents, with its interval
  Index documents = 0;          ///< with a finite KL at all these lengths; others are left out
  Estimate factor;              ///< by which KL is multiplied when the context doubles
};

/// Of each document the least-squares slope of ln KL over log2 of the length; the factor is the exponential of their
/// mean, its interval that of Student's t over documents at 95 %. Pairing takes out how hard a document is: documents
/// with very different KL give a narrow interval if all change alike.
Growth growth_of(const KlByLength& kl);

}  // namespace kvbench::eval
