// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/session/session.hpp>

namespace kvbench::bounds {

/// Weights of the tokens in numerator and denominator.
struct TokenWeights {
  std::vector<double> num, den;  ///< [n]
};
/// Those of the entries of a cache that hold one of its tokens, summed by token. Its entries must not depend on the
/// query.
TokenWeights token_weights(Session& session, Backend& backend);

}  // namespace kvbench::bounds
