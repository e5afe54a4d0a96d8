// SPDX-License-Identifier: Apache-2.0
// The uniform baselines of BalanceKV (arXiv 2502.07861, Fig. 2): after the prompt and after each decoded token they
// hold the tokens and the weights that their rules give from the same draws. docs/theory/uniform.samples.md.
#pragma once

#include <kvbench/faithful/oracle/uniform.hpp>

namespace kvbench::faithful {

/// Implementations of both baselines: what they hold at the times of observe_stream().
using UniformStream = std::function<std::vector<bounds::Snapshot>(const bounds::StreamPlan&)>;
using UniformRepoStream =
    std::function<std::vector<bounds::Snapshot>(const bounds::StreamPlan&, const UniformRepoSizes&)>;
void check_uniform(bounds::CheckContext& context, const UniformStream& stream);
void check_uniform_repo(bounds::CheckContext& context, const UniformRepoStream& stream);

bounds::Check uniform_samples();

}  // namespace kvbench::faithful
