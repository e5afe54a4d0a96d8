// SPDX-License-Identifier: Apache-2.0
// The recomputations of papers, with rules that may be faulty, in place of the methods.
#pragma once

#include <kvbench/faithful/oracle/chelsea.hpp>
#include <kvbench/faithful/oracle/subgen.hpp>

namespace kvbench::faithful {

bounds::ChelseaUnderTest chelsea_with(const ChelseaRules& rules);

/// Adds the rows of subgen.algorithm1, .lemma1, .lemma2, .partition, .amm and .theorem1 for Algorithm 1 recomputed by
/// these rules. The statistical checks see the first 256 tokens of the subject, the last quarter of which is decoded;
/// they do not run where there are fewer than 16 tokens.
void run_subgen_rules(bounds::CheckContext& context, const SubgenRules& rules);

}  // namespace kvbench::faithful
