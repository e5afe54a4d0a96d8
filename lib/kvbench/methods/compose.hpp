// SPDX-License-Identifier: Apache-2.0
// Compositions A+Q: method A chooses, weights or merges tokens, and quantiser Q stores them. The composition is a
// method like any other. Its parameters are those of A, and those of Q with the name of Q before them:
// snapkv+kivi4[window=16,kivi4.group=64].
//
// Where A retrieves tokens per query, Q stores the full cache from which A chooses: in slow memory, or in fast memory
// where A has no other. What A keeps beside it stays in 16 bits.
//
// A budget is that of A: under one that limits a cost, A's tokens are searched, at the bits of Q.
//
// Wrappers W(A): W selects by the scores of A. The parameters are those of A and those of W, which have the name of W
// before them where A has one of the same name: adakv(snapkv)[window=16,alpha=0.3].
#pragma once

#include <kvbench/methods/contract/wrapper.hpp>

namespace kvbench::methods {

/// Throws Error where the composition makes no sense: Q is no quantiser, or A is one or keeps everything.
MethodInfo compose(const MethodInfo& method, const MethodInfo& quantiser);

/// Throws Error where A states no scores, or is a composition itself. Parameters by which each query head selects are
/// refused when they are bound.
MethodInfo wrap(const Wrapper& wrapper, const MethodInfo& method);

}  // namespace kvbench::methods
