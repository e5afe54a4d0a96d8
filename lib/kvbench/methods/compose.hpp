// SPDX-License-Identifier: Apache-2.0
// Compositions A+Q: method A chooses, weights or merges tokens, and quantiser Q stores them. The composition is a
// method like any other. Its parameters are those of A, and those of Q with the name of Q before them:
// snapkv+kivi4[window=16,kivi4.group=64].
//
// A budget is that of A: under one that limits a cost, A's tokens are searched, at the bits of Q.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

/// Throws Error where the composition makes no sense: Q is no quantiser, or A is one, keeps everything, or chooses per
/// query from a cache that holds all tokens.
MethodInfo compose(const MethodInfo& method, const MethodInfo& quantiser);

}  // namespace kvbench::methods
