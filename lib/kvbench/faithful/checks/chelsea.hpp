// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), Algorithm 1: the entries of `chelsea` after the prompt and after each decoded token are
// those of an independent recomputation (oracle/chelsea_oracle.hpp), at several budgets and settings.
// docs/theory/chelsea.algorithm.md.
#pragma once

#include <kvbench/faithful/oracle/chelsea.hpp>

namespace kvbench::faithful {

void check_chelsea_algorithm(bounds::CheckContext& context, const bounds::ChelseaUnderTest& chelsea);

bounds::Check chelsea_algorithm();

}  // namespace kvbench::faithful
