// SPDX-License-Identifier: Apache-2.0
// The list of all operations. Back ends generate their dispatch from it: a new operation is its header, an entry here
// and one source file per back end.
#pragma once

#include <variant>

#include <kvbench/kernels/attention.hpp>
#include <kvbench/kernels/balance.hpp>
#include <kvbench/kernels/codes.hpp>
#include <kvbench/kernels/distances.hpp>
#include <kvbench/kernels/pages.hpp>
#include <kvbench/kernels/rows.hpp>
#include <kvbench/kernels/similarity.hpp>
#include <kvbench/kernels/spread.hpp>
#include <kvbench/kernels/topk.hpp>
#include <kvbench/kernels/weighted_attention.hpp>

namespace kvbench::kernels {

/// A list of operations, which are templates over the type of their array references.
template <template <template <class> class> class... Op>
struct OperationList {
  /// Points to an operation of the list whose arrays are buffers.
  using Pointer = std::variant<const Op<Buffer>*...>;
};

using Operations = OperationList<                                                         //
    ExactAttention, WeightedAttention, TopK,                                              //
    GatherRows, SquaredNorms, RotateRows, ColumnSums, SoftmaxRows, PoolRows, ReduceRows,  // rows.hpp
    SquaredDistances, KCenter, LeaderClusters,                                            // distances.hpp
    NormalizeRows, InnerProducts, BestMatch, MeanRows,                                    // similarity.hpp
    PageBounds, SplitSigns,                                                               // pages.hpp
    BalanceWalk, SpreadRows,                                                              //
    GroupScales, EncodeGroups, FitScales, DecodeGroups, HadamardRows, ProjectRows>;       // codes.hpp

}  // namespace kvbench::kernels
